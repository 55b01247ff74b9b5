/** The command line of Sluice. A profile calls `main` with its list of features. */
export type { MainOptions } from './main.ts'
export { main, runCommand } from './main.ts'
