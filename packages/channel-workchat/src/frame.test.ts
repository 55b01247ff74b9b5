import { expect, test } from 'vitest'
import { decodeFrame, encodeFrame, type Frame, headerOf } from './frame.ts'

/** Made with `protoc --encode`: SeqID 300, LogID 2^64 - 1, service 1, method 1, the header a=b, and the payload `hi`. */
const ENCODED = '08ac0210ffffffffffffffffff0118012001' + '2a060a0161120162' + '42026869'
const FRAME: Frame = {
  seqId: 300n,
  logId: 18_446_744_073_709_551_615n,
  service: 1,
  method: 1,
  headers: [{ key: 'a', value: 'b' }],
  payload: Buffer.from('hi'),
}

test('a frame is written and read byte by byte', () => {
  expect(Buffer.from(encodeFrame(FRAME)).toString('hex')).toBe(ENCODED)
  expect(decodeFrame(Buffer.from(ENCODED, 'hex'))).toEqual(FRAME)
})

test('every field survives, also negative numbers, empty texts and long payloads', () => {
  const frames: Frame[] = [
    { seqId: 0n, logId: 0n, service: 0, method: 0, headers: [] },
    {
      seqId: 1n << 63n,
      logId: 127n,
      service: -1,
      method: 2 ** 31 - 1,
      headers: [
        { key: '', value: '' },
        { key: 'ü', value: '漢字 😀' },
      ],
      payloadEncoding: 'gzip',
      payloadType: '',
      payload: Buffer.alloc(70_000, 7),
      logIdNew: 'id',
    },
  ]
  for (const frame of frames) expect(decodeFrame(encodeFrame(frame))).toEqual(frame)
})

test('fields of a later version are skipped, whatever their type', () => {
  // Field 15 as a number, as eight bytes, as text, and field 16 as four bytes.
  const unknown = Buffer.from('78ac02' + '790102030405060708' + '7a03616263' + '850101020304', 'hex')
  expect(decodeFrame(Buffer.concat([unknown, Buffer.from(ENCODED, 'hex'), unknown]))).toEqual(FRAME)
})

test('bytes that are cut off or no frame throw, and never read beyond their end', () => {
  const bytes = Buffer.from(ENCODED, 'hex')
  const ends = new Set([0, 3, 14, 16, 18, 26])
  for (let length = 1; length < bytes.length; length++) {
    const cut = bytes.subarray(0, length)
    if (ends.has(length)) expect(decodeFrame(cut)).toBeDefined()
    else expect(() => decodeFrame(cut), `${length} bytes`).toThrow()
  }
  for (const hex of ['0b', '0f', '08ffffffffffffffffffff01', '42ff01', '42ffffffffffffffffff01', '3203ffffff']) {
    expect(() => decodeFrame(Buffer.from(hex, 'hex')), hex).toThrow()
  }
  const headers = Array.from({ length: 101 }, () => ({ key: 'k', value: 'v' }))
  expect(() => decodeFrame(encodeFrame({ ...FRAME, headers }))).toThrow('more than 100 headers')
})

test('a header that is missing reads as empty', () => {
  expect([headerOf(FRAME, 'a'), headerOf(FRAME, 'b')]).toEqual(['b', ''])
})
