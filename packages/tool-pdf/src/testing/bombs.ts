/** Small PDFs that are much work. */
import { constants, deflateRawSync } from 'node:zlib'
import { handMade, streamObject } from './hand-made.ts'

const MEBIBYTE = 1024 * 1024

/** A page whose content unpacks to as many mebibytes of blanks; about a thousandth of it in bytes. */
export function deflateBomb(mebibytes: number): Buffer {
  // Flushed, a piece ends on a byte and needs nothing before it: any number of them makes one stream.
  const piece = deflateRawSync(Buffer.alloc(MEBIBYTE, ' '), { finishFlush: constants.Z_FULL_FLUSH })
  const stream = Buffer.concat([Buffer.from([0x78, 0x9c]), ...Array.from({ length: mebibytes }, () => piece)])
  return handMade({ objects: { 4: streamObject(stream, '/Filter /FlateDecode') } })
}

/** A page with an entry of as many million arrays: two bytes each in the file, many times that once they are read. */
export function arrayBomb(millions: number): Buffer {
  const arrays = '[]'.repeat(millions * 1_000_000)
  return handMade({ objects: { 3: `<</Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /More [${arrays}]>>` } })
}

/** A page that draws a form twice, which draws another twice, and so on: two to the power of thirty. */
export function endlessForms(): Buffer {
  const [first, last] = [10, 40]
  const form = (number: number) =>
    streamObject('/X Do /X Do', `/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X ${number + 1} 0 R>>>>`)
  const forms = Array.from({ length: last - first }, (_, at): [number, Buffer] => [first + at, form(first + at)])
  return handMade({
    objects: {
      3: `<</Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources <</XObject <</X ${first} 0 R>>>>>>`,
      4: streamObject('/X Do'),
      ...Object.fromEntries(forms),
      [last]: streamObject('BT ET', '/Type /XObject /Subtype /Form /BBox [0 0 9 9]'),
    },
  })
}
