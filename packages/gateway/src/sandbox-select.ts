/** Which sandbox commands run in: by live probe, never by what is merely installed (§2.6 `[security.sandbox]`, §2.7 rule 11). */
import { buildHint, errorText, type Logger, ROWS, type RunBare, type Sandbox, type SandboxProbe, signalScope } from '@sluice/sdk'
import { noSandbox, refusingSandbox } from './sandbox-none.ts'

/** A probe that takes longer counts as failed. */
const PROBE_TIMEOUT_MS = 15_000

export interface SandboxChoice {
  readonly sandbox: Sandbox
  /** The backends that were tried, in that order; for status and `doctor`. */
  readonly probes: readonly (SandboxProbe & { readonly name: string })[]
  /** One sentence, where commands run without the isolation that was asked for, or do not run at all. */
  readonly warning?: string
}

export interface SelectSandboxOptions {
  /** `auto`, `none`, or a backend's name. */
  readonly backend: string
  /** True: without a working backend nothing runs. */
  readonly required: boolean
  readonly enabled: boolean
  /** What this build has, in any order, without the no-op. */
  readonly sandboxes: readonly Sandbox[]
  readonly run: RunBare
  /** Says what got out of the backend, as the end of a sentence; `undefined` if nothing did. */
  prove(sandbox: Sandbox, signal: AbortSignal): Promise<string | undefined>
  readonly log: Logger
  readonly signal: AbortSignal
}

/** The probes of those a choice has left out, side by side; for `doctor`. */
export const probeOthers = (
  options: SelectSandboxOptions,
  { probes }: SandboxChoice,
): Promise<readonly (SandboxProbe & { readonly name: string })[]> =>
  Promise.all(
    options.sandboxes
      .filter(({ name }) => !probes.some((tried) => tried.name === name))
      .map(async (sandbox) => ({ name: sandbox.name, ...(await probe(sandbox, options)) })),
  )

/** Takes as long as the probes do, so not for the way to the first request. Never rejects. */
export async function selectSandbox(options: SelectSandboxOptions): Promise<SandboxChoice> {
  const { backend, log } = options
  const probes: (SandboxProbe & { name: string })[] = []
  if (!options.enabled || backend === 'none') return without(options, probes, 'it is switched off in [security.sandbox]')

  const candidates = options.sandboxes
    .filter((sandbox) => backend === 'auto' || sandbox.name === backend)
    .sort((a, b) => b.strength - a.strength)
  for (const sandbox of candidates) {
    const found = { name: sandbox.name, ...(await probe(sandbox, options)) }
    probes.push(found)
    log.info(found.available ? 'sandbox chosen' : 'sandbox not available', { backend: found.name, detail: found.detail })
    if (found.available) return { sandbox, probes }
  }
  return without(options, probes, reason(backend, probes))
}

async function probe(sandbox: Sandbox, options: SelectSandboxOptions): Promise<SandboxProbe> {
  using scope = signalScope([options.signal], PROBE_TIMEOUT_MS)
  const limit = scope.signal
  const cut = Promise.withResolvers<SandboxProbe>()
  const onAbort = () => cut.resolve({ available: false, detail: 'the probe did not end in time' })
  limit.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([probeAndProve(sandbox, options, limit), cut.promise])
  } catch (error) {
    return { available: false, detail: `the probe failed: ${errorText(error)}` }
  } finally {
    limit.removeEventListener('abort', onAbort)
  }
}

async function probeAndProve(sandbox: Sandbox, { run, prove }: SelectSandboxOptions, signal: AbortSignal): Promise<SandboxProbe> {
  const found = await sandbox.probe(signal, run)
  if (!found.available) return found
  const leak = await prove(sandbox, signal)
  return leak === undefined ? found : { available: false, detail: `${found.detail}: it was tried, and ${leak}` }
}

/** Why no backend was found. */
function reason(backend: string, probes: SandboxChoice['probes']): string {
  const last = probes.at(-1)
  if (backend === 'auto') return last ? 'no backend works on this machine' : 'no backend is in this build'
  if (last) return `'${backend}' does not work on this machine: ${last.detail}`
  const row = ROWS.find(([, { backend: name, kind }]) => kind === 'sandbox' && name === backend)
  return row ? `'${backend}' is not in this build: ${buildHint(row[0])}` : `'${backend}' is no backend`
}

function without({ backend, required, enabled, log }: SelectSandboxOptions, probes: SandboxChoice['probes'], why: string): SandboxChoice {
  if (required) {
    const warning = `commands are refused, since a sandbox is required and ${why}`
    log.warn(warning)
    return { sandbox: refusingSandbox(warning), probes, warning }
  }
  if (!enabled || backend === 'none') return { sandbox: noSandbox, probes }
  const warning = `commands run without a sandbox: ${why}`
  log.warn(warning)
  return { sandbox: noSandbox, probes, warning }
}
