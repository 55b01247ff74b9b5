/** Chooses the sandbox that commands run in: by a live probe, never because a backend is merely installed. */

import { signalScope } from '@sluice/kit'
import { errorText, howToGet, ROWS, type RunBare, type Sandbox, type SandboxProbe } from '@sluice/sdk'
import { noSandbox, refusingSandbox } from './no-sandbox.ts'

/** The first limit of a probe. Each later attempt waits twice as long, so that a busy machine finds its sandbox in the end. */
const PROBE_MS = 15_000
const PROBE_MS_MAX = 120_000

export interface TriedProbe extends SandboxProbe {
  readonly name: string
  /** True: the probe did not end in time, so whether the backend works is not known. */
  readonly isUnknown?: boolean
}

export interface SandboxChoice {
  readonly sandbox: Sandbox
  /** The backends that were probed, in that order; for status and `doctor`. */
  readonly probes: readonly TriedProbe[]
  /** One sentence, where commands do not run as the configuration asks, or do not run at all. */
  readonly warning?: string
  /** False: a later probe may find a better backend. */
  readonly isFinal: boolean
}

export interface SelectSandboxOptions {
  /** `auto`, `none`, or a backend's name. */
  readonly backend: string
  /** True: without a working backend no command runs. */
  readonly required: boolean
  readonly enabled: boolean
  /** The backends of this build in any order. */
  readonly sandboxes: readonly Sandbox[]
  readonly run: RunBare
  /** Resolves to the resource that a confined command reached, as the end of a sentence; `undefined` if it reached none. */
  prove(sandbox: Sandbox, signal: AbortSignal): Promise<string | undefined>
  readonly signal: AbortSignal
}

/**
 * Probes the named backend first, then the others from the strongest down, and takes the first that works. No other backend
 * takes the place of a named one while a sandbox is required. `attempt` counts the choices made before. Takes as long as the probes do, so no request may wait for it at the start. Never rejects.
 */
export async function selectSandbox(options: SelectSandboxOptions, attempt = 0): Promise<SandboxChoice> {
  const { backend, required } = options
  const probes: TriedProbe[] = []
  if (!options.enabled || backend === 'none') {
    if (!required) return { sandbox: noSandbox, probes, isFinal: true }
    return { ...refusal('a sandbox is required and it is switched off in [security.sandbox]'), probes, isFinal: true }
  }
  const rank = ({ name, strength }: Sandbox) => (name === backend ? Number.POSITIVE_INFINITY : strength)
  const mayTake = ({ name }: Sandbox) => backend === 'auto' || name === backend || !required
  for (const sandbox of options.sandboxes.filter(mayTake).toSorted((a, b) => rank(b) - rank(a))) {
    const found = await probe(sandbox, options, attempt)
    probes.push(found)
    if (!found.available) continue
    if (backend === 'auto' || sandbox.name === backend) return { sandbox, probes, isFinal: true }
    return { sandbox, probes, isFinal: false, warning: `commands run in '${sandbox.name}': ${reason(backend, probes)}` }
  }
  return { ...withoutBackend(options, probes), probes, isFinal: false }
}

/** Probes, at the same time, the backends that a choice has not tried; for `doctor`. */
export function probeOthers(options: SelectSandboxOptions, { probes }: SandboxChoice): Promise<readonly TriedProbe[]> {
  const others = options.sandboxes.filter(({ name }) => !probes.some((tried) => tried.name === name))
  return Promise.all(others.map((sandbox) => probe(sandbox, options, 0)))
}

async function probe(sandbox: Sandbox, { run, prove, signal }: SelectSandboxOptions, attempt: number): Promise<TriedProbe> {
  const { name } = sandbox
  const limitMs = Math.min(PROBE_MS * 2 ** attempt, PROBE_MS_MAX)
  using scope = signalScope([signal], limitMs)
  const limit = scope.signal
  const timedOut = Promise.withResolvers<TriedProbe>()
  const onAbort = () => {
    const detail = `its probe did not end within ${limitMs / 1000} s`
    timedOut.resolve({ name, available: false, isInstalled: true, isUnknown: true, detail })
  }
  limit.addEventListener('abort', onAbort, { once: true })
  if (limit.aborted) onAbort()
  const probeAndProve = async (): Promise<TriedProbe> => {
    const found = await sandbox.probe(limit, run)
    if (!found.available) return { name, ...found }
    const leak = await prove(sandbox, limit)
    if (leak === undefined) return { name, ...found }
    return { name, available: false, isInstalled: true, detail: `${found.detail}: it was tried, and ${leak}` }
  }
  try {
    return await Promise.race([probeAndProve(), timedOut.promise])
  } catch (error) {
    return { name, available: false, isInstalled: true, detail: `the probe failed: ${errorText(error)}` }
  } finally {
    limit.removeEventListener('abort', onAbort)
  }
}

/** Why the configured backend is not in use, as the end of a sentence. */
function reason(backend: string, probes: readonly TriedProbe[]): string {
  if (backend === 'auto') return probes.length > 0 ? 'no backend works on this machine' : 'no backend is in this build'
  const named = probes.find(({ name }) => name === backend)
  if (named) return `'${backend}' does not work on this machine: ${named.detail}`
  const row = ROWS.find(([, { backend: name, kind }]) => kind === 'sandbox' && name === backend)
  return row ? `'${backend}' is not in this build; to get it, ${howToGet(row[0])}` : `'${backend}' is not a backend`
}

/** The errors of a disk without room, which says nothing about a sandbox. */
const FULL = /\b(?:ENOSPC|EDQUOT)\b/

/**
 * The choice where no backend works. Commands run without a sandbox on a machine that has none, and where the named one is
 * not available. A backend that is installed may only be slow or not started yet: `auto` refuses commands until it works.
 */
function withoutBackend({ backend, required }: SelectSandboxOptions, probes: readonly TriedProbe[]): WarnedChoice {
  if (required) {
    const cure = backend === 'auto' ? '' : '. Set backend = "auto" under [security.sandbox] to let another sandbox take its place'
    return refusal(`a sandbox is required and ${reason(backend, probes)}${cure}`)
  }
  const awaited = probes.filter(({ isInstalled, isUnknown }) => (backend === 'auto' ? isInstalled : isUnknown))
  if (awaited.length === 0) return { sandbox: noSandbox, warning: `commands run without a sandbox: ${reason(backend, probes)}` }
  const found = awaited.map(({ name, detail }) => `'${name}' (${detail})`).join(', ')
  if (awaited.some(({ detail }) => FULL.test(detail)))
    return refusal(`${found} cannot be tried because the disk is full. It is tried again once there is room`)
  const cure = 'repair it, or set backend = "none" under [security.sandbox] to run commands without a sandbox'
  return refusal(`${found} is on this machine and does not work yet. It is tried again; meanwhile ${cure}`)
}

interface WarnedChoice {
  readonly sandbox: Sandbox
  readonly warning: string
}

function refusal(why: string): WarnedChoice {
  const warning = `commands are refused: ${why}`
  return { sandbox: refusingSandbox(warning), warning }
}
