/** What goes through a raw REPL at most. */

export const RUN_MS = 30_000
export const OUTPUT_BYTES_MAX = 65_536
/** Of the code of one run. */
export const CODE_BYTES_MAX = 65_536
/** Of `main.py`. */
export const MAIN_BYTES_MAX = 131_072
