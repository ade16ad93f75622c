"use strict";
// The text filter: it hides what does not hold all the words.
{
  const field = document.getElementById("filter");
  const text = part => [...part.children].filter(child => !child.matches(".rule")).map(child => child.textContent).join(" ").toLowerCase();
  const parts = [...document.querySelectorAll("[data-filter]")].map(part => [part, text(part)]);
  const shown = document.getElementById("shown");
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const [part, text] of parts) {
      part.hidden = !words.every(word => text.includes(word));
      if (!part.hidden) n++;
    }
    shown.textContent = words.length ? n + " of " + parts.length : "";
    document.dispatchEvent(new CustomEvent("filtered", { detail: words.length > 0 }));
  };
  if (field) {
    field.closest("label").hidden = false;
    field.addEventListener("input", filter);
    field.addEventListener("keydown", event => {
      if (event.key === "Escape") { field.value = ""; filter(); }
    });
    if (field.value) filter(); // a browser keeps what was typed over a reload
  }
}
