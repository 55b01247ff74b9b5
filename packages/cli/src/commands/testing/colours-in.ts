/** Sees the picture of the test of a model. */
import { inflateSync } from 'node:zlib'

/** The colours of the image, as the bytes of the first and the last pixel of its first row. */
const COLOURS: Readonly<Record<string, string>> = { '220,20,30': 'red', '20,160,40': 'green', '20,40,220': 'blue', '250,220,20': 'yellow' }

/** Returns the colours of the PNG in a request, from left to right, such as `red and blue`; undefined without a PNG. */
export function coloursIn(json: string): string | undefined {
  const [base64] = /iVBORw0KGgo[A-Za-z0-9+/=]+/.exec(json) ?? []
  if (base64 === undefined) return undefined
  const png = Buffer.from(base64, 'base64')
  const start = png.indexOf('IDAT')
  const row = inflateSync(png.subarray(start + 4, start + 4 + png.readUInt32BE(start - 4))).subarray(1, 1 + 3 * png.readUInt32BE(16))
  return [row.subarray(0, 3), row.subarray(-3)].map((pixel) => COLOURS[[...pixel].join()]).join(' and ')
}
