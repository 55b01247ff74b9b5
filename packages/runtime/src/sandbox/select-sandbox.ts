/** Chooses the sandbox that commands run in: by a live probe, never by what is merely installed. */

import { signalScope } from '@sluice/kit'
import { buildHint, errorText, ROWS, type RunBare, type Sandbox, type SandboxProbe } from '@sluice/sdk'
import { noSandbox, refusingSandbox } from './no-sandbox.ts'

/** A probe that takes longer tells nothing. Each repetition waits twice as long, so that a busy machine gets its sandbox in the end. */
const PROBE_MS = 15_000
const PROBE_MS_MAX = 120_000

export interface TriedProbe extends SandboxProbe {
  readonly name: string
  /** True: it did not end in time, so whether the backend works is not known. */
  readonly isUnknown?: boolean
}

export interface SandboxChoice {
  readonly sandbox: Sandbox
  /** The backends that were tried, in that order; for status and `doctor`. */
  readonly probes: readonly TriedProbe[]
  /** One sentence, where commands run otherwise than the configuration asks, or do not run at all. */
  readonly warning?: string
  /** False: a later probe may find a better one. */
  readonly isFinal: boolean
}

export interface SelectSandboxOptions {
  /** `auto`, `none`, or a backend's name. */
  readonly backend: string
  /** True: without a working backend nothing runs. */
  readonly required: boolean
  readonly enabled: boolean
  /** The backends of this build in any order, without the no-op. */
  readonly sandboxes: readonly Sandbox[]
  readonly run: RunBare
  /** Says what got out of the backend, as the end of a sentence; `undefined` if nothing did. */
  prove(sandbox: Sandbox, signal: AbortSignal): Promise<string | undefined>
  readonly signal: AbortSignal
  /** How often the choice was made before. */
  readonly attempt?: number
}

/** Probes, side by side, the backends that a choice has left out; for `doctor`. */
export const probeOthers = (options: SelectSandboxOptions, { probes }: SandboxChoice): Promise<readonly TriedProbe[]> =>
  Promise.all(
    options.sandboxes.filter(({ name }) => !probes.some((tried) => tried.name === name)).map((sandbox) => probe(sandbox, options)),
  )

/**
 * Tries the named backend first, then the others from the strongest down. Takes as long as the probes do, so it is not for the way
 * to the first request. Never rejects.
 */
export async function selectSandbox(options: SelectSandboxOptions): Promise<SandboxChoice> {
  const { backend, required } = options
  const probes: TriedProbe[] = []
  if (!options.enabled || backend === 'none') {
    if (!required) return { sandbox: noSandbox, probes, isFinal: true }
    return { ...refusal('a sandbox is required and it is switched off in [security.sandbox]'), probes, isFinal: true }
  }
  const rank = ({ name, strength }: Sandbox) => (name === backend ? Number.POSITIVE_INFINITY : strength)
  for (const sandbox of options.sandboxes.toSorted((a, b) => rank(b) - rank(a))) {
    const found = await probe(sandbox, options)
    probes.push(found)
    if (!found.available) continue
    if (backend === 'auto' || sandbox.name === backend) return { sandbox, probes, isFinal: true }
    return { sandbox, probes, isFinal: false, warning: `commands run in '${sandbox.name}': ${reason(backend, probes)}` }
  }
  return { ...withoutBackend(options, probes), probes, isFinal: false }
}

async function probe(sandbox: Sandbox, { run, prove, signal, attempt = 0 }: SelectSandboxOptions): Promise<TriedProbe> {
  const { name } = sandbox
  const ms = Math.min(PROBE_MS * 2 ** attempt, PROBE_MS_MAX)
  using scope = signalScope([signal], ms)
  const limit = scope.signal
  const cut = Promise.withResolvers<TriedProbe>()
  const onAbort = () =>
    cut.resolve({ name, available: false, isInstalled: true, isUnknown: true, detail: `its probe did not end within ${ms / 1000} s` })
  limit.addEventListener('abort', onAbort, { once: true })
  if (limit.aborted) onAbort()
  const tryIt = async (): Promise<TriedProbe> => {
    const found = await sandbox.probe(limit, run)
    if (!found.available) return { name, ...found }
    const leak = await prove(sandbox, limit)
    if (leak === undefined) return { name, ...found }
    return { name, available: false, isInstalled: true, detail: `${found.detail}: it was tried, and ${leak}` }
  }
  try {
    return await Promise.race([tryIt(), cut.promise])
  } catch (error) {
    return { name, available: false, isInstalled: true, detail: `the probe failed: ${errorText(error)}` }
  } finally {
    limit.removeEventListener('abort', onAbort)
  }
}

/** Says why the configured backend is not in use. */
function reason(backend: string, probes: readonly TriedProbe[]): string {
  if (backend === 'auto') return probes.length > 0 ? 'no backend works on this machine' : 'no backend is in this build'
  const named = probes.find(({ name }) => name === backend)
  if (named) return `'${backend}' does not work on this machine: ${named.detail}`
  const row = ROWS.find(([, { backend: name, kind }]) => kind === 'sandbox' && name === backend)
  return row ? `'${backend}' is not in this build: ${buildHint(row[0])}` : `'${backend}' is no backend`
}

/**
 * A machine that has no backend runs commands without one, as does one whose named backend is not available. But a backend that is
 * installed may only be slow, or not up yet: `auto` waits for it.
 */
function withoutBackend({ backend, required }: SelectSandboxOptions, probes: readonly TriedProbe[]): Told {
  if (required) return refusal(`a sandbox is required and ${reason(backend, probes)}`)
  const awaited = probes.filter(({ isInstalled, isUnknown }) => (backend === 'auto' ? isInstalled : isUnknown))
  if (awaited.length === 0) return { sandbox: noSandbox, warning: `commands run without a sandbox: ${reason(backend, probes)}` }
  const found = awaited.map(({ name, detail }) => `'${name}' (${detail})`).join(', ')
  const cure = 'mend it, or set backend = "none" under [security.sandbox] to run commands without a sandbox'
  return refusal(`${found} is on this machine and does not work yet. It is tried again; meanwhile ${cure}`)
}

type Told = Required<Pick<SandboxChoice, 'sandbox' | 'warning'>>

function refusal(why: string): Told {
  const warning = `commands are refused: ${why}`
  return { sandbox: refusingSandbox(warning), warning }
}
