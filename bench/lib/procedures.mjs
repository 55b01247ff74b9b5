// Writes folders with many procedures. Each procedure has a trigger of every kind, on its own topics.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PAYLOAD_BYTES = 1024
/** A value that meets every condition. */
const MET = 91
const UNMET = 1

/** Returns the topic of an event for procedure `number`, by the kind of its trigger. */
export const TOPICS = {
  webhook: (number) => `/machines/${number}/alarm`,
  mqtt: (number) => `machines/${number}/temperature`,
  wildcard: (number) => [`site-${number}/press/alarm`, `north/line-${number}/alarm`, `hall/east/cell-${number}/heat/7`][number % 3],
  peripheral: (number) => `board-${number}/pin-4`,
}
const filterOf = (number) => [`site-${number}/+/alarm`, `+/line-${number}/alarm`, `hall/+/cell-${number}/#`][number % 3]

/** Returns one of 50 conditions, because many procedures use the same conditions in practice. */
const conditionOf = (number) => `$.celsius > ${40 + (number % 50)}`

const tomlOf = (number, mode) => `[sop]
name = "machine-${number}"
description = "Sees to the alarms of machine ${number}"
version = "1.0.0"
priority = "normal"
execution_mode = "${mode}"
max_concurrent = 10000

[[triggers]]
type = "webhook"
path = "${TOPICS.webhook(number)}"
condition = "${conditionOf(number)}"

[[triggers]]
type = "mqtt"
topic = "${TOPICS.mqtt(number)}"
condition = "${conditionOf(number)}"

[[triggers]]
type = "mqtt"
topic = "${filterOf(number)}"
condition = "${conditionOf(number)}"

[[triggers]]
type = "peripheral"
board = "board-${number}"
signal = "pin-4"
condition = "${conditionOf(number)}"
`

/** Returns the steps. In deterministic mode, a run ends at once; in other modes, it waits for a person first. */
const mdOf = (number) => `# Machine ${number}

## Steps

1. **See what is there** - Lists what has been written down of the machine so far.
   - tools: file_list
   - input: {}
`

/** Writes `count` procedures below the folder; returns the folder. */
export function writeProcedures(folder, count, mode = 'deterministic') {
  for (let number = 0; number < count; number++) {
    const own = join(folder, `machine-${number}`)
    mkdirSync(own, { recursive: true })
    writeFileSync(join(own, 'SOP.toml'), tomlOf(number, mode))
    writeFileSync(join(own, 'SOP.md'), mdOf(number))
  }
  return folder
}

/** Returns JSON of 1 KiB that meets every condition, or none. */
export function payloadOf({ isMet = true } = {}) {
  const payload = { celsius: isMet ? MET : UNMET, at: '2026-01-01T00:00:00Z', machine: { id: 4711, hall: 'east' }, text: '' }
  payload.text = 'x'.repeat(PAYLOAD_BYTES - JSON.stringify(payload).length)
  return JSON.stringify(payload)
}
