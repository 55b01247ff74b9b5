/** The answer to `--version`: the release, and the commit that the bundle was built from. */
import manifest from '../package.json' with { type: 'json' }

/** Set by scripts/build.mjs; empty without git, and undefined when the sources run directly. */
declare const SLUICE_COMMIT: string | undefined
const commit = typeof SLUICE_COMMIT === 'undefined' ? '' : SLUICE_COMMIT

export const VERSION_LINE = `sluice ${manifest.version}${commit === '' ? '' : ` (commit ${commit})`}`

/** Tells whether an argument asks for the version. */
export const isVersionOption = (word: string): boolean => word === '--version' || word === '-V' || word === '-v'
