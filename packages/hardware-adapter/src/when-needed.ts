/**
 * Everything that is loaded with its first use, behind one door: what a build loads at its start is then in few files. To be
 * imported dynamically.
 */
export { actOnDatasheets } from './act-on-datasheets.ts'
export { checkAdapters } from './check-adapters.ts'
export { openAdapter } from './open-adapter.ts'
