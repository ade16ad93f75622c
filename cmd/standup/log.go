package main

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger builds the one logger of a run. It writes to w (stderr) only.
func newLogger(w io.Writer, level, encoding string) (*zap.Logger, error) {
	lvl, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, &UsageError{Message: fmt.Sprintf("--%s %q is not one of debug, info, warn, error", flagLogLevel, level)}
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.ISO8601TimeEncoder
	var enc zapcore.Encoder
	switch encoding {
	case "console":
		enc = zapcore.NewConsoleEncoder(config)
	case "json":
		enc = zapcore.NewJSONEncoder(config)
	default:
		return nil, &UsageError{Message: fmt.Sprintf("--%s %q is not one of console, json", flagLogEncoding, encoding)}
	}
	return zap.New(zapcore.NewCore(enc, zapcore.AddSync(w), lvl)), nil
}
