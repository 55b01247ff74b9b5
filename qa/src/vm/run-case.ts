/** Runs one case in its own machine and collects the results of its tests. */
import type { ModuleLoader } from './extra-modules.ts'
import { caseTimeoutSecs, type FoundCase, ROOT } from './find-cases.ts'
import { quote } from './initial-files.ts'
import { type MachineEnd, type MachineOutput, runMachine, type Substrate } from './machine.ts'
import { runRaspi } from './raspi/raspi-machine.ts'
import type { PartsLoader } from './raspi/raspi-parts.ts'
import type { RaspiModel, VmTestResult } from './vm-case.ts'

/** The results of a case. */
export interface CaseResult {
  readonly name: string
  /** The reason why the case did not run. */
  readonly skipped?: string
  readonly results: readonly VmTestResult[]
  /** Titles of tests without a result because the machine ended first. */
  readonly lost: readonly string[]
  /** Standard output and error of the case and, if tests were lost, how the machine ended. */
  readonly output: string
  /** The part of `tookMs` before the case started; 0 if it did not start. */
  readonly bootMs: number
  readonly tookMs: number
}

/** The parts that the cases of one run share. */
export interface CaseOptions {
  /** The folder with code compiled by the host, which the guest reads. */
  readonly compileCache: string
  readonly loadModule: ModuleLoader
  readonly raspiParts: PartsLoader
  readonly signal: AbortSignal
  onResult(result: VmTestResult): void
  onOutput(bytes: Uint8Array): void
}

const OUTPUT_CHARS_MAX = 64 * 1024
const MEMORY_MIB = 1024
const RUNNER = `${import.meta.dirname}/guest/main.ts`

/** Runs a case, unless it has to be skipped. */
export async function runCase(substrate: Substrate, found: FoundCase, options: CaseOptions): Promise<CaseResult> {
  const { name, definition } = found
  const skip = (skipped: string): CaseResult => ({ name, skipped, results: [], lost: [], output: '', bootMs: 0, tookMs: 0 })
  const reason = await definition.skipReason?.()
  if (reason !== undefined) return skip(reason)
  const boot = await bootable(substrate, found, options)
  if ('missing' in boot) return skip(boot.missing)

  let output = ''
  const results: VmTestResult[] = []
  const keep = (bytes: Uint8Array): void => {
    output = (output + Buffer.from(bytes).toString()).slice(-OUTPUT_CHARS_MAX)
    options.onOutput(bytes)
  }
  const end = await boot.run(options.signal, {
    stdout: keep,
    stderr: keep,
    report(line) {
      const result = JSON.parse(line) as VmTestResult
      results.push(result)
      options.onResult(result)
    },
  })
  const lost = Object.keys(definition.tests).filter((title) => results.every(({ test }) => test !== title))
  return { name, results, lost, output: lost.length > 0 ? `${output}${explain(end)}` : output, bootMs: end.bootMs, tookMs: end.tookMs }
}

interface Bootable {
  run(signal: AbortSignal, output: MachineOutput): Promise<MachineEnd>
}
type Boot = Bootable | { readonly missing: string }

function bootable(substrate: Substrate, found: FoundCase, options: CaseOptions): Promise<Boot> {
  const { machine = 'pc' } = found.definition
  return machine === 'pc' ? pc(substrate, found, options) : raspi(found, { raspiParts: options.raspiParts, model: machine })
}

async function pc(substrate: Substrate, { file, definition }: FoundCase, { loadModule, compileCache }: CaseOptions): Promise<Boot> {
  const modules: string[] = []
  for (const module of definition.modules ?? []) {
    const extra = await loadModule(module)
    if ('missing' in extra) return extra
    modules.push(...extra.load)
  }
  const job = {
    command: `exec ${[process.execPath, RUNNER, file].map(quote).join(' ')}`,
    folder: ROOT,
    modules,
    udev: definition.udev ?? false,
    systemd: definition.systemd ?? false,
    env: { HOME: '/root', LANG: 'C.UTF-8', NODE_COMPILE_CACHE: compileCache },
    timeoutSecs: caseTimeoutSecs(definition),
  }
  const memoryMib = definition.memoryMib ?? MEMORY_MIB
  return { run: (signal, output) => runMachine(substrate, job, { memoryMib, output, signal }) }
}

async function raspi(
  { file, definition }: FoundCase,
  { raspiParts, model }: { readonly raspiParts: PartsLoader; readonly model: RaspiModel },
): Promise<Boot> {
  const parts = await raspiParts()
  if ('missing' in parts) return parts
  const timeoutSecs = caseTimeoutSecs(definition)
  return { run: (signal, output) => runRaspi(parts, file, { output, signal, timeoutSecs, model }) }
}

function explain({ status, console }: MachineEnd): string {
  const what = status === 'timeout' ? 'did not end' : status === 'died' ? 'ended before its command' : `ended with status ${status}`
  return `the machine ${what}\n${console.replaceAll('\r', '')}`
}
