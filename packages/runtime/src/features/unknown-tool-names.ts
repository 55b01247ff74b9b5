/** Names of tools in the policy that no tool has: a mistyped name asks nobody, or approves nothing. */
import { policySection } from '@sluice/config'
import { nearestName } from '@sluice/kit'
import type { OpenRuntime } from '../open-runtime.ts'

const KEYS = ['auto_approve', 'always_ask'] as const

/** One sentence for each name. Tools that this build leaves out count as known. */
export function unknownToolNames({ config, snapshot }: Pick<OpenRuntime, 'config' | 'snapshot'>): string[] {
  const policy = config().core(policySection)
  const known = [...snapshot().registry.tools.keys()]
  return KEYS.flatMap((key) =>
    policy[key]
      .filter((name) => name !== '*' && !known.includes(name))
      .map((name) => {
        const near = nearestName(name, known)
        return `\`security.policy.${key}\` names the tool "${name}", which does not exist${near === undefined ? '' : `; did you mean "${near}"?`}`
      }),
  )
}
