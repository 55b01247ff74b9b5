/** The first version of Node whose SQLite binds numbered parameters; `scripts/bootstrap.mjs`, which runs without this file, repeats it. */
export const NODE_MIN = '24.7'
