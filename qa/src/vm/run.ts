/**
 * `pnpm test:vm [name…]` runs the cases that need a kernel with simulated devices, each in a temporary virtual machine.
 * `--list` lists them. If no machine can run here, the command prints what is missing and succeeds.
 */
import { enableCompileCache, flushCompileCache } from 'node:module'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { cacheFolder } from '../debian-packages.ts'
import { moduleLoader } from './extra-modules.ts'
import { type FoundCase, findCases } from './find-cases.ts'
import { findQemu, guestKernel, guestPackages } from './guest-packages.ts'
import { lastLine } from './last-line.ts'
import type { Substrate } from './machine.ts'
import { partsLoader } from './raspi/raspi-parts.ts'
import { type CaseResult, runCase } from './run-case.ts'
import type { VmTestResult } from './vm-case.ts'

const USAGE = 'usage: pnpm test:vm [--list] [name…]'

/** The guest reuses the code that this process compiles when it imports the cases. */
const compileCache = cacheFolder('vm/compiled')
enableCompileCache(compileCache)

async function substrate(): Promise<Substrate | { readonly missing: string }> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return { missing: 'virtual machines need Linux on x86-64' }
  try {
    const packages = await guestPackages()
    return { qemu: await findQemu(), packages, kernel: await guestKernel(packages) }
  } catch (error) {
    const why = lastLine(error)
    return { missing: why === 'spawn apt-get ENOENT' ? "virtual machines need Debian's packages, and this system has no apt-get" : why }
  }
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

function showResult(name: string, { test, passed, tookMs, error }: VmTestResult): void {
  console.log(`${passed ? 'ok    ' : 'FAILED'} ${name}: ${test} (${seconds(tookMs)})`)
  if (error !== undefined) console.log(error.replaceAll(/^/gm, '         '))
}

const hasFailed = ({ lost, results }: Pick<CaseResult, 'lost' | 'results'>): boolean =>
  lost.length > 0 || results.some(({ passed }) => !passed)

function showCase({ name, skipped, results, lost, output, bootMs, tookMs }: CaseResult, streamed: boolean): void {
  if (skipped !== undefined) {
    console.log(`skipped ${name}: ${skipped}`)
    return
  }
  for (const test of lost) console.log(`FAILED ${name}: ${test}: the machine ended before this test`)
  if (hasFailed({ lost, results }) && !streamed && output !== '') console.log(output.trimEnd().replaceAll(/^/gm, `${name} | `))
  else if (lost.length > 0) console.log(output.trimEnd())
  console.log(`      ${name} took ${seconds(tookMs)}, including ${seconds(bootMs)} to boot`)
}

/** A machine has one processor, so at most as many machines should run at once as this host has processors. */
async function runAll(
  cases: readonly FoundCase[],
  machine: Substrate,
  { signal, machinesMax }: { readonly signal: AbortSignal; readonly machinesMax: number },
): Promise<readonly CaseResult[]> {
  const done: CaseResult[] = []
  const waiting = [...cases]
  const streamed = cases.length === 1
  const loadModule = moduleLoader(machine.kernel)
  const raspiParts = partsLoader(machine.packages)
  const work = async (): Promise<void> => {
    for (let found = waiting.shift(); found && !signal.aborted; found = waiting.shift()) {
      const { name } = found
      const result = await runCase(machine, found, {
        compileCache,
        loadModule,
        raspiParts,
        signal,
        onResult: (one) => showResult(name, one),
        onOutput: (bytes) => void (streamed && process.stdout.write(bytes)),
      })
      showCase(result, streamed)
      done.push(result)
    }
  }
  await Promise.all(Array.from({ length: Math.min(machinesMax, cases.length) }, work))
  return done
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ options: { list: { type: 'boolean' } }, allowPositionals: true })
  const cases = await findCases(positionals)
  if (values.list) {
    for (const { name, definition } of cases) console.log(`${name}: ${Object.keys(definition.tests).length} tests`)
    return
  }
  const machine = await substrate()
  if ('missing' in machine) {
    console.log(`no virtual machine, nothing was tested: ${machine.missing}`)
    return
  }
  flushCompileCache()
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort())
  const startedAtMs = performance.now()
  const { signal } = stop
  let done = await runAll(cases, machine, { signal, machinesMax: availableParallelism() })
  const failedCases = done.filter(hasFailed).map(({ name }) => name)
  // Machines without hardware support are slow, and their clocks go on: a case may miss a deadline while another case runs.
  if (process.env.CI === 'true' && failedCases.length > 0 && !signal.aborted) {
    console.log(`[vm] UNRELIABLE or broken: runs once more, one at a time: ${failedCases.join(', ')}`)
    const again = cases.filter(({ name }) => failedCases.includes(name))
    done = [...done.filter((result) => !hasFailed(result)), ...(await runAll(again, machine, { signal, machinesMax: 1 }))]
  }
  const results = done.flatMap(({ results }) => results)
  const failed = results.filter(({ passed }) => !passed).length + done.flatMap(({ lost }) => lost).length
  const skipped = done.filter((result) => result.skipped !== undefined).length
  const took = seconds(performance.now() - startedAtMs)
  console.log(`in virtual machines: ${results.length - failed} passed, ${failed} failed, ${skipped} cases skipped (${took})`)
  if (failed > 0 || stop.signal.aborted) process.exitCode = 1
}

try {
  await main()
} catch (error) {
  console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`)
  process.exitCode = 2
}
