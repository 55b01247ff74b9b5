import { gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { unpackKernel } from './kernel-image.ts'

const KERNEL = Buffer.concat([Buffer.from([0x7f, 0x45, 0x4c, 0x46]), Buffer.alloc(5000, 'kernel')])

/** Builds an image in the layout of the boot protocol: two set-up sectors, code, the payload and its unpacked length. */
function imageOf(payload: Buffer): Buffer {
  const image = Buffer.alloc(3 * 512 + 64)
  image[0x1f1] = 2
  image.writeUInt32LE(64, 0x248)
  image.writeUInt32LE(payload.length + 4, 0x24c)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(KERNEL.length)
  return Buffer.concat([image, payload, length, Buffer.alloc(100)])
}

test.each([
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
])('unpacks a kernel compressed with %s', (_name, pack) => {
  expect(unpackKernel(imageOf(pack(KERNEL)))?.equals(KERNEL)).toBe(true)
})

test.each([
  ['is too short', Buffer.alloc(10)],
  ['has a payload of an unknown format', imageOf(Buffer.from('????'))],
  ['has a truncated payload', imageOf(gzipSync(KERNEL).subarray(0, 20))],
  ['contains no kernel', imageOf(gzipSync(Buffer.from('not a kernel')))],
])('returns undefined for an image that %s', (_what, image) => {
  expect(unpackKernel(image)).toBeUndefined()
})
