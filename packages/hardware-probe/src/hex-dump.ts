/** Memory as people read it: the address, 16 bytes, and what of them is text. */
import { hexAddress } from './probe.ts'

const PER_LINE = 16

export function hexDump(bytes: Uint8Array, address: number): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += PER_LINE) {
    const part = [...bytes.subarray(at, at + PER_LINE)]
    const hex = part.map((byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(' ')
    const text = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${hexAddress(address + at)}  ${hex.padEnd(3 * PER_LINE - 1)}  ${text}`)
  }
  return lines.join('\n')
}
