/** The sandbox commands run in now: chosen at the first use, chosen again while a better one may come up. */
import type { Logger } from '@sluice/sdk'
import { probeOthers, type SandboxChoice, type SelectSandboxOptions, selectSandbox, type TriedProbe } from './select-sandbox.ts'

export interface SandboxInForce {
  /** Makes the choice on the first call, and gives the one in force afterwards. */
  sandbox(): Promise<SandboxChoice>
  /** The choice in force; `undefined` before the first one is made. */
  chosenSandbox(): SandboxChoice | undefined
  /** Chooses again, unless what is in force is what the configuration asks for. Until it has, the choice in force stays. */
  retrySandbox(): Promise<void>
  /** Probes the backends that the choice has left out. */
  otherSandboxes(): Promise<readonly TriedProbe[]>
}

export function createSandboxInForce(options: () => Omit<SelectSandboxOptions, 'attempt'>, log: Logger): SandboxInForce {
  let inForce: Promise<SandboxChoice> | undefined
  let latest: SandboxChoice | undefined
  let retrying: Promise<SandboxChoice> | undefined
  let attempt = 0
  const choose = async (): Promise<SandboxChoice> => {
    const next = await selectSandbox({ ...options(), attempt: attempt++ })
    report(next, latest, log)
    latest = next
    return next
  }
  const sandbox = () => (inForce ??= choose())
  return {
    sandbox,
    chosenSandbox: () => latest,
    async retrySandbox() {
      if (!latest || latest.isFinal) return
      retrying ??= choose().finally(() => {
        retrying = undefined
      })
      inForce = Promise.resolve(await retrying)
    },
    otherSandboxes: async () => probeOthers(options(), await sandbox()),
  }
}

/** Logs what is new, so that a backend that stays away is reported once. */
function report({ sandbox, probes, warning }: SandboxChoice, before: SandboxChoice | undefined, log: Logger): void {
  for (const { name, available, isInstalled, isUnknown, detail } of probes) {
    if (before?.probes.some((tried) => tried.name === name && tried.detail === detail)) continue
    // A backend that is not on this machine at all, such as one of another system, is no news.
    const level = available || isInstalled || isUnknown ? 'info' : 'debug'
    log[level](available ? 'sandbox works' : 'sandbox not available', { backend: name, detail })
  }
  if (warning !== undefined && warning !== before?.warning) log.warn(warning)
  if (before && sandbox.name !== before.sandbox.name) log.info('commands run in another sandbox from now on', { backend: sandbox.name })
}
