/** Small PDFs that cause excessive work. */
import { constants, deflateRawSync } from 'node:zlib'
import { handMade, streamObject } from './hand-made.ts'

const MEBIBYTE = 1024 * 1024

/** Makes a page whose content unpacks to `mebibytes` MiB of blanks, from about a thousandth of that size. */
export function deflateBomb(mebibytes: number): Buffer {
  // After a full flush, a piece ends on a byte boundary and refers to nothing before it, so pieces can be concatenated.
  const piece = deflateRawSync(Buffer.alloc(MEBIBYTE, ' '), { finishFlush: constants.Z_FULL_FLUSH })
  const stream = Buffer.concat([Buffer.from([0x78, 0x9c]), ...Array.from({ length: mebibytes }, () => piece)])
  return handMade({ objects: { 4: streamObject(stream, '/Filter /FlateDecode') } })
}

/** Makes a page with `millions` million arrays, which take two bytes each in the file and many times that in memory. */
export function arrayBomb(millions: number): Buffer {
  const arrays = '[]'.repeat(millions * 1_000_000)
  return handMade({ objects: { 3: `<</Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /More [${arrays}]>>` } })
}

/** Makes a page that draws a form twice, which draws the next form twice, and so on: 2^30 drawings in total. */
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
