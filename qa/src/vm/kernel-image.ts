/** Unpacks a compressed kernel (x86 boot protocol) on the host, which is faster than on an emulated processor. */
import { execFileSync } from 'node:child_process'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'

const SETUP_SECTORS = 0x1f1
const PAYLOAD_OFFSET = 0x248
const PAYLOAD_LENGTH = 0x24c
const SECTOR_BYTES = 512
const IMAGE_BYTES_MAX = 256 * 1024 * 1024
const ELF = Buffer.from([0x7f, 0x45, 0x4c, 0x46])

/** Returns the ELF file in the image; `undefined` if its compression is not supported. */
export function unpackKernel(image: Buffer): Buffer | undefined {
  if (image.length < SECTOR_BYTES * 2) return undefined
  const start = ((image[SETUP_SECTORS] ?? 0) + 1) * SECTOR_BYTES + image.readUInt32LE(PAYLOAD_OFFSET)
  // The last four bytes are the unpacked length.
  const payload = image.subarray(start, start + image.readUInt32LE(PAYLOAD_LENGTH) - 4)
  try {
    const kernel = decompress(payload)
    return kernel?.subarray(0, ELF.length).equals(ELF) ? kernel : undefined
  } catch {
    return undefined
  }
}

function decompress(payload: Buffer): Buffer | undefined {
  const magic = payload.subarray(0, 4).toString('hex')
  if (magic.startsWith('1f8b')) return gunzipSync(payload)
  if (magic === '28b52ffd') return zstdDecompressSync(payload)
  if (magic === 'fd377a58')
    return execFileSync('xz', ['--decompress', '--stdout', '--single-stream'], {
      input: payload,
      maxBuffer: IMAGE_BYTES_MAX,
      stdio: ['pipe', 'pipe', 'ignore'],
    })
  return undefined
}
