/** What `sluice doctor` says of the sandbox commands run in (§2.6 `[security.sandbox]`). */
import type { SandboxConfig } from './config/core-sections.ts'
import { type Check, fail, ok, warn } from './doctor-check.ts'
import type { SandboxChoice } from './sandbox-select.ts'

const SWITCH_ON = 'set enabled = true and backend = "auto" under [security.sandbox]'
const INSTALL = "install what it names, or build another sandbox in: 'sluice features' lists them"

export function checkSandbox(
  { sandbox, probes, warning }: SandboxChoice,
  { enabled, backend, required }: Pick<SandboxConfig, 'enabled' | 'backend' | 'required'>,
): Check {
  const isOff = !enabled || backend === 'none'
  if (isOff && !required) return warn('sandbox', 'commands run without a sandbox: it is switched off', SWITCH_ON)
  const measured = probes.map(({ name, available, detail }) => `${name} ${available ? 'works' : 'does not'} (${detail})`).join('; ')
  if (!warning) return ok('sandbox', `${sandbox.name}: ${measured}`)
  // of a backend that was named the warning says it all
  const detail = backend === 'auto' && measured !== '' ? `${warning}: ${measured}` : warning
  return (required ? fail : warn)('sandbox', detail, isOff ? SWITCH_ON : INSTALL)
}
