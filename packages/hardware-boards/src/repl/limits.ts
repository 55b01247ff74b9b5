/** Limits of a raw REPL, which the tools use before the code of the REPL is loaded. */

export const RUN_MS = 30_000
export const OUTPUT_BYTES_MAX = 65_536
/** The longest code of one run. */
export const CODE_BYTES_MAX = 65_536
/** The longest `main.py`. */
export const MAIN_BYTES_MAX = 131_072
