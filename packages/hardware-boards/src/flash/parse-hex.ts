/** Checks an Intel HEX image record by record, and refuses damaged records and addresses outside of the chip's flash. */
import { AppError } from '@sluice/sdk'

const RECORD = /^:([0-9A-Fa-f]{2})([0-9A-Fa-f]{4})([0-9A-Fa-f]{2})((?:[0-9A-Fa-f]{2})*)([0-9A-Fa-f]{2})$/
const DATA = 0
const END = 1
const SEGMENT = 2
const LINEAR = 4
/** Records with an entry point, which these chips ignore. */
const STARTS: ReadonlySet<number> = new Set([3, 5])

/** Returns the bytes of flash that the image fills. Throws `invalid_request` with the first wrong line. */
export function parseHex(image: Uint8Array, flash: { readonly start: number; readonly length: number }): { readonly bytes: number } {
  const lines = Buffer.from(image).toString('latin1').trimEnd().split(/\r?\n/)
  let base = 0
  let bytes = 0
  for (const [index, line] of lines.entries()) {
    const [, length = '', address = '', kind = '', data = ''] = RECORD.exec(line) ?? throwWrong(index, 'is not a record')
    const all = Buffer.from(line.slice(1), 'hex')
    if (all.length !== Number.parseInt(length, 16) + 5) throwWrong(index, 'does not have its stated length')
    if (all.reduce((sum, byte) => sum + byte, 0) % 256 !== 0) throwWrong(index, 'is damaged: its checksum is wrong')
    const type = Number.parseInt(kind, 16)
    const count = data.length / 2
    if (type === DATA) {
      const start = base + Number.parseInt(address, 16)
      if (start < flash.start || start + count > flash.start + flash.length)
        throwWrong(index, `writes to 0x${start.toString(16)}, outside of flash`)
      bytes += count
    } else if (type === END) {
      if (index !== lines.length - 1) throwWrong(index + 1, 'follows the end record')
      if (bytes === 0) throwWrong(index, 'ends an image without data')
      return { bytes }
    } else if ((type === SEGMENT || type === LINEAR) && count === 2) base = Number.parseInt(data, 16) * (type === SEGMENT ? 0x10 : 0x10000)
    else if (!STARTS.has(type)) throwWrong(index, `has the unknown type ${type}`)
  }
  return throwWrong(lines.length - 1, 'is the last one, but not an end record')
}

function throwWrong(index: number, why: string): never {
  throw new AppError('invalid_request', `The image is not an Intel HEX image for this board: line ${index + 1} ${why}`)
}
