/** The tool `hardware_memory_read`: the live memory of a board's chip. */
import type { DeviceGuard } from '@sluice/hardware'
import { defineTool, type Tool, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { defaultBoard, LIVE_NAMES, liveBoardNamed } from './live-boards.ts'
import { hexAddress, parseAddress, wordsWithin } from './memory-range.ts'
import type { Probe } from './probe.ts'

const LENGTH_MAX = 256

/** `boards` are the names of the configured boards. */
export const memoryRead = (probe: Probe, guard: DeviceGuard, boards: readonly string[]): Tool =>
  defineTool({
    name: 'hardware_memory_read',
    description: `Reads live memory of a connected board's chip through its debug port, ${LIVE_NAMES}, and returns a hex dump. Reads flash and RAM only, and changes nothing.`,
    input: v.object({
      address: v.optional(
        v.pipe(v.string(), v.maxLength(32), v.description('First address, such as 0x20000000 (the start of RAM), or in decimal')),
        '0x20000000',
      ),
      length: v.optional(v.pipe(whole(1, LENGTH_MAX), v.description('Number of bytes')), 128),
      board: v.optional(v.pipe(v.string(), v.maxLength(64), v.description('The board; default: the configured one'))),
    }),
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    async run({ address: text, length, board: name }, context) {
      const board = name === undefined ? defaultBoard(boards) : liveBoardNamed(name)
      const address = parseAddress(text)
      const words = wordsWithin(board, address, length)
      const { bytes, source, warning } = await guard.use({ device: board.name, tool: 'hardware_memory_read', context }, () =>
        probe.memory(board, words, context.signal),
      )
      const shown = bytes.subarray(0, address - words.address + length)
      const isAligned = words.address === address
      return [
        `Live memory of ${board.name} (${board.chip}), read through ${source}:`,
        ...(warning === undefined ? [] : [warning]),
        ...(isAligned ? [] : [`Read from ${hexAddress(words.address)}, because ${hexAddress(address)} is not aligned to 4.`]),
        hexDump(shown, words.address),
      ].join('\n')
    },
  })

const BYTES_PER_LINE = 16

/** Formats memory as lines of an address, 16 bytes and their printable characters. */
function hexDump(bytes: Uint8Array, address: number): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += BYTES_PER_LINE) {
    const part = [...bytes.subarray(at, at + BYTES_PER_LINE)]
    const hex = part.map((byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(' ')
    const text = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${hexAddress(address + at)}  ${hex.padEnd(3 * BYTES_PER_LINE - 1)}  ${text}`)
  }
  return lines.join('\n')
}
