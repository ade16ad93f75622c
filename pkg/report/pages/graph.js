// The picture: a tier that is pointed at or focused shows all it waits for and all that waits for it.
{
  const graph = document.querySelector("svg.graph");
  const about = document.getElementById("about");
  const boxes = graph ? [...graph.querySelectorAll(".tier")] : [];
  const links = { up: boxes.map(() => []), down: boxes.map(() => []) };
  for (const edge of graph ? graph.querySelectorAll(".edge") : []) {
    const from = +edge.dataset.from, to = +edge.dataset.to;
    links.up[from].push([edge, to]);
    links.down[to].push([edge, from]);
  }
  const hint = about ? about.textContent : "";
  let lit = [], pinned = null;

  const light = (element, ...classes) => {
    element.classList.add("on", ...classes);
    lit.push(element);
  };
  // walk follows the edges one way, lights what it meets, and returns how many tiers that are.
  const walk = (start, way) => {
    const seen = new Set([start]);
    for (const tier of seen) {
      for (const [edge, next] of links[way][tier]) {
        light(edge, way);
        if (!seen.has(next)) { seen.add(next); light(boxes[next], way); }
      }
    }
    return seen.size - 1;
  };
  const clear = () => {
    for (const element of lit) element.classList.remove("on", "up", "down", "here");
    lit = [];
    graph.classList.remove("lit");
    about.textContent = hint;
  };
  const part = (text, name) => Object.assign(document.createElement("span"), { textContent: text, className: name });
  const show = box => {
    clear();
    const tier = +box.dataset.tier;
    const up = walk(tier, "up"), down = walk(tier, "down");
    light(box, "here");
    graph.classList.add("lit");
    const row = Object.assign(document.createElement("a"), { href: "#r" + tier, textContent: box.dataset.name });
    about.replaceChildren(row, part(" waits for " + up, "up"), ", ", part(down + " wait for it", "down"),
      box.querySelector("title").textContent.slice(box.dataset.name.length).split("\n").join(" · "));
  };
  // reveal scrolls the picture, and not the page, to a box.
  const reveal = box => {
    const picture = graph.parentElement, frame = picture.getBoundingClientRect(), at = box.getBoundingClientRect();
    picture.scrollBy(at.x + at.width / 2 - frame.x - frame.width / 2, at.y + at.height / 2 - frame.y - frame.height / 2);
  };
  const settle = () => pinned ? show(pinned) : clear();
  // A pointer crosses many boxes on its way: only where it stays is anything lit.
  let timer;
  const soon = action => { clearTimeout(timer); timer = setTimeout(action, 40); };
  const pin = box => { pinned = pinned === box ? null : box; settle(); };

  for (const box of boxes) {
    box.addEventListener("pointerenter", () => soon(() => show(box)));
    box.addEventListener("pointerleave", () => soon(settle));
    box.addEventListener("focus", () => show(box));
    box.addEventListener("blur", settle);
    box.addEventListener("click", event => { event.preventDefault(); pin(box); });
  }
  const follow = () => {
    const box = boxes.find(box => "#" + box.id === location.hash);
    if (box) { pinned = box; settle(); reveal(box); }
  };
  if (graph) {
    about.hidden = false;
    document.addEventListener("keydown", event => {
      if (event.key === "Escape") { pinned = null; settle(); }
    });
    document.addEventListener("filtered", event => {
      graph.classList.toggle("filtered", event.detail);
      const hits = boxes.filter(box => !document.getElementById("r" + box.dataset.tier).hidden);
      for (const box of boxes) box.classList.remove("hit");
      for (const box of hits) box.classList.add("hit");
      if (event.detail && hits.length > 0) reveal(hits[0]);
    });
    addEventListener("hashchange", follow);
    reveal(boxes[0]);
    follow();
    const field = document.getElementById("filter");
    if (field.value) field.dispatchEvent(new Event("input"));
  }
}
