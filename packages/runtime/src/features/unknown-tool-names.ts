/** Finds names in the policy that no tool has: a mistyped name asks for no approval, or approves no tool. */
import { policySection } from '@sluice/config'
import { nearestName } from '@sluice/kit'
import type { Snapshot } from './snapshot.ts'

const KEYS = ['auto_approve', 'always_ask'] as const

/** One sentence for each unknown name. Tools that this build leaves out are known. */
export function unknownToolNames({ config, registry }: Snapshot): string[] {
  const policy = config.core(policySection)
  const known = [...registry.tools.keys()]
  return KEYS.flatMap((key) => {
    const unknown = policy[key].filter((name) => name !== '*' && !known.includes(name))
    return unknown.map((name) => {
      const near = nearestName(name, known)
      const hint = near === undefined ? '' : `; did you mean "${near}"?`
      return `\`security.policy.${key}\` names the tool "${name}", which does not exist${hint}`
    })
  })
}
