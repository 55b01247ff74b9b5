// Parses the command line of the benchmark.
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { DOCUMENTED, GROUPS } from './groups.mjs'

const USAGE = `usage: pnpm bench [--only ${GROUPS.map(({ name }) => name).join(',')}] [--rounds <number>] [--minutes <number>] [--quick]
                  [--json] [--out <file>] [--check] [--no-build] [--dir <directory on the disk to measure>]
                  [--base <folder of another build>] [--peers] [--write]`
const ROUNDS_MAX = 100
const MINUTES_MAX = 10_000

function usageError(message) {
  console.error(`${message}\n${USAGE}`)
  process.exit(2)
}

function chosenGroups(only, write) {
  if (only === undefined && write) return GROUPS.filter(({ name }) => DOCUMENTED.includes(name))
  if (only === undefined) return GROUPS.filter(({ onlyWhenAsked }) => !onlyWhenAsked)
  const names = only.split(',')
  const known = new Set(GROUPS.flatMap(({ name, rows }) => [name, ...rows]))
  const unknown = names.find((name) => !known.has(name))
  if (unknown !== undefined) usageError(`there is no group or row '${unknown}'`)
  return GROUPS.filter(({ name, rows }) => names.some((wanted) => wanted === name || rows.includes(wanted)))
}

function parse() {
  try {
    return parseArgs({
      options: {
        only: { type: 'string' },
        rounds: { type: 'string' },
        minutes: { type: 'string', default: '30' },
        quick: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        out: { type: 'string' },
        check: { type: 'boolean', default: false },
        'no-build': { type: 'boolean', default: false },
        dir: { type: 'string', default: tmpdir() },
        base: { type: 'string' },
        peers: { type: 'boolean', default: false },
        write: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    return usageError(error.message)
  }
}

/** Returns the parsed options. Exits with 2 and prints the usage if one is wrong. */
export function readOptions() {
  const { only, rounds, minutes: minutesText, 'no-build': noBuild, ...rest } = parse()
  const count = rounds === undefined ? undefined : Number(rounds)
  if (count !== undefined && !(Number.isInteger(count) && count >= 1 && count <= ROUNDS_MAX))
    usageError(`--rounds wants a whole number from 1 to ${ROUNDS_MAX}`)
  const minutes = Number(minutesText)
  if (!(Number.isInteger(minutes) && minutes >= 3 && minutes <= MINUTES_MAX))
    usageError(`--minutes wants a whole number from 3 to ${MINUTES_MAX}`)
  return { ...rest, minutes, groups: chosenGroups(only, rest.write), rounds: count, build: !noBuild }
}
