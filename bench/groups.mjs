// What is measured together, and the rows of the table it yields.
import { measureCommands } from './measures/commands.mjs'
import { measureFanOut } from './measures/fan-out.mjs'
import { measureSize } from './measures/size.mjs'
import { measureIdleMemory, measureStarts } from './measures/start.mjs'
import { measureDuplicates, measureTurns } from './measures/webhook.mjs'

/** Each `measure` resolves to its rounds, each round to `{ ours, bare?, detail? }` by the name of the row. */
export const GROUPS = [
  { name: 'size', rows: ['size-before-first-turn', 'size-in-all'], measure: measureSize },
  { name: 'start', rows: ['start-minimal', 'start-full', 'first-start-minimal', 'first-start-full'], measure: measureStarts },
  { name: 'memory', rows: ['idle-memory'], measure: measureIdleMemory },
  { name: 'commands', rows: ['command-version', 'command-config-get'], measure: measureCommands },
  { name: 'webhook', rows: ['webhook-throughput', 'webhook-latency'], measure: measureTurns },
  { name: 'duplicate', rows: ['duplicate-throughput'], measure: measureDuplicates },
  { name: 'sse', rows: ['sse-deliveries', 'sse-latency', 'sse-memory'], measure: (bench) => measureFanOut(bench, 'sse') },
  { name: 'ws', rows: ['ws-deliveries', 'ws-latency', 'ws-memory'], measure: (bench) => measureFanOut(bench, 'ws') },
]
