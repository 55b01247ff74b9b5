/** Environment variables with the prefix of this program that nothing reads, such as mistyped ones. */

import { nearestName } from '@sluice/kit'
import type { Environment } from './env-overlay.ts'
import { type Key, readKey } from './toml/schema-keys.ts'
import type { OwnedSection } from './types.ts'

const PREFIX = 'SVC_'
/** Read by other parts than the configuration: the command line and the scripts of the repository. */
const OTHERS = ['SVC_DATA_DIR', 'SVC_TOOLCHAIN_DIR', 'SVC_FORCE_TOOLCHAIN']

/** One sentence for each. Variables of features that this build leaves out are unknown to it. */
export function unknownVariables(env: Environment, sections: readonly OwnedSection[]): string[] {
  const set = Object.keys(env).filter((name) => name.startsWith(PREFIX) && env[name] !== '')
  if (set.length === 0) return []
  const known = new Set([...OTHERS, ...sections.flatMap(({ section }) => variablesOf(readKey(section.schema)))])
  return set
    .filter((name) => !known.has(name))
    .map((name) => {
      const near = nearestName(name, known)
      return `the environment variable ${name} is set, but no key of this build reads it${near === undefined ? '' : `; did you mean ${near}?`}`
    })
}

function variablesOf({ metadata, shape }: Key): string[] {
  const below = shape.kind === 'table' ? [...shape.keys.values()].flatMap(variablesOf) : []
  return [...(metadata.env ?? []), ...below]
}
