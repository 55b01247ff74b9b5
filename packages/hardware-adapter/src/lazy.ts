/**
 * The modules that are loaded on first use, in one chunk of the bundle: a build then reads few files at its start. Import this file
 * dynamically.
 */
export { checkAdapters } from './check-adapters.ts'
export { openAdapter, unsupportedSettings } from './open-adapter.ts'
export { runDatasheetAction } from './tools/datasheet-actions.ts'
