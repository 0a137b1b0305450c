/** Regular expressions whose matching takes linear time, whatever the pattern (RE2 syntax). */
import { RE2JS, RE2JSException } from 're2js';
import { fieldInvalid } from '../core/errors.js';

/** Bytes of a pattern in UTF-8. */
const MAX_PATTERN_BYTES = 1_024;

/**
 * Instructions of a compiled pattern. Matching takes time in proportion to it; what people look for
 * compiles to a few dozen.
 */
const MAX_PROGRAM_SIZE = 2_000;

/** @throws FIELD_INVALID for `pattern` */
export function compilePattern(pattern: string): RE2JS {
  const compiled = compile(pattern);
  if (compiled.programSize() > MAX_PROGRAM_SIZE) throw fieldInvalid('pattern', 'is too complex');
  return compiled;
}

function compile(pattern: string): RE2JS {
  const bytes = Buffer.byteLength(pattern);
  if (bytes === 0 || bytes > MAX_PATTERN_BYTES) {
    throw fieldInvalid('pattern', `must be 1-${MAX_PATTERN_BYTES} bytes`);
  }
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    throw fieldInvalid('pattern', `is no RE2 expression: ${error.message}`);
  }
}
