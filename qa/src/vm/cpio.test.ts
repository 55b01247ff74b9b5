import { expect, test } from 'vitest'
import { createArchive } from './cpio.ts'

test('aligns every member to four bytes and ends with the trailer', () => {
  const archive = createArchive([
    { path: 'a', bytes: Buffer.from('x') },
    { path: 'bc', bytes: Buffer.from('12345') },
  ])
  const headers = [...archive.toString('latin1').matchAll(/070701/g)].map(({ index }) => index)
  expect(headers).toHaveLength(3)
  expect([...headers, archive.length].filter((at) => at % 4 !== 0)).toEqual([])
  expect(archive.toString('latin1')).toContain('TRAILER!!!\0')
})

test('stores the name, mode and bytes of a member', () => {
  const archive = createArchive([{ path: 'bin' }, { path: 'bin/run', bytes: Buffer.from('#!/bin/sh\n'), executable: true }])
  const second = archive.subarray(archive.indexOf('bin/run\0') - 110)
  const field = (index: number) => Number.parseInt(second.toString('latin1', 6 + index * 8, 14 + index * 8), 16)
  expect({ mode: field(1).toString(8), size: field(6), nameLength: field(11) }).toEqual({ mode: '100755', size: 10, nameLength: 8 })
  expect(second.indexOf('#!/bin/sh\n')).toBe(120)
})
