/**
 * `pnpm fuzz` sends mutations of valid requests to the check of every channel; none may be accepted. `--scheme` selects one or
 * several schemes, `--count` the number of mutations, `--seed` the seed of an earlier run.
 */
import { parseArgs } from 'node:util'
import { createRandom } from '@sluice/testkit/random'
import { type Finding, type FuzzResult, fuzz, shownRequest } from './fuzz.ts'
import { SCHEMES, schemeOf } from './schemes.ts'

const USAGE = `usage: pnpm fuzz [--scheme ${[...SCHEMES.keys()].join(',')}] [--count <number>] [--seed <number>]`

function readOptions(): { readonly schemes: readonly string[]; readonly count?: number; readonly seed: number } {
  const { values } = parseArgs({ options: { scheme: { type: 'string' }, count: { type: 'string' }, seed: { type: 'string' } } })
  const names = values.scheme?.split(',') ?? [...SCHEMES.keys()]
  const unknown = names.find((name) => !SCHEMES.has(name))
  if (unknown !== undefined) throw new Error(`unknown scheme '${unknown}'`)
  const number = (name: 'count' | 'seed'): number | undefined => {
    const value = values[name]
    if (value !== undefined && !/^\d{1,10}$/.test(value)) throw new Error(`--${name} must be a whole number; got '${value}'`)
    return value === undefined ? undefined : Number(value)
  }
  const count = number('count')
  return { schemes: names, seed: number('seed') ?? 1, ...(count !== undefined && { count }) }
}

/** Prints a finding with its request. */
function show({ outcome, steps, request, error }: Finding): void {
  console.log(`  ${outcome}: ${steps.join('; ')}
    ${shownRequest(request)}${
      error === undefined
        ? ''
        : `
    ${String(error)}`
    }`)
}

/** The messages of an error and of its causes. */
const reasons = (error: unknown): string[] =>
  error instanceof Error ? [error.message, ...(error.cause === undefined ? [] : reasons(error.cause))] : [String(error)]

const thousands = (count: number): string => count.toLocaleString('en')

function report(scheme: string, { counts, same, tookMs, findings }: FuzzResult): void {
  const tried = counts.refused + counts.unreadable + counts.accepted + counts.broken
  const rate = Math.round(tried / (tookMs / 1000))
  console.log(
    [
      scheme.padEnd(19),
      `${thousands(tried)} mutations`.padStart(20),
      `${thousands(rate)}/s`.padStart(11),
      `accepted ${counts.accepted}`,
      `broken ${counts.broken}`,
      `verified but unreadable ${thousands(counts.unreadable)}`,
      `same request ${thousands(same)}`,
    ].join('  '),
  )
  for (const finding of findings) if (finding.outcome !== 'unreadable') show(finding)
}

/** On a terminal, a progress line that is overwritten and finally removed. */
function progressOf(scheme: string, count: number): (tried: number) => void {
  if (!process.stderr.isTTY) return () => {}
  return (tried) => void process.stderr.write(tried === count ? '\r\u001b[K' : `\r${scheme} ${thousands(tried)} of ${thousands(count)}`)
}

try {
  const { schemes, seed, ...options } = readOptions()
  // Every refusal is an error, and its stack is not needed.
  Error.stackTraceLimit = 0
  console.log(`seed ${seed}`)
  for (const name of schemes) {
    const random = createRandom(seed)
    const scheme = await schemeOf(name, random)
    const { count } = { ...scheme, ...options }
    const result = await fuzz(scheme, { random, count, onProgress: progressOf(name, count) }).catch((cause: unknown) => {
      throw new Error(`scheme ${name}`, { cause })
    })
    report(name, result)
    if (result.counts.accepted + result.counts.broken > 0) process.exitCode = 1
  }
} catch (error) {
  console.error(`${reasons(error).join(': ')}\n${USAGE}`)
  process.exitCode = 2
}
