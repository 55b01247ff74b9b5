import type { RowSurvey } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { checkSignatures } from './check-signatures.ts'

const check = async (given: Partial<RowSurvey>) => {
  const survey: RowSurvey = { isDemanded: true, unverified: [], configVersion: 3, configSeen: 3, ...given }
  return (await checkSignatures({ unverifiedRows: async () => survey })).map(({ status, detail, fix }) => `${status} | ${detail} | ${fix}`)
}
const unsigned = (name: string) => ({ name, values: {}, fault: null })
const forged = (name: string) => ({ name, values: {}, fault: 'its HMAC is wrong' })

test('the embedded database has no line, and a database whose rows are signed is well', async () => {
  expect(await checkSignatures({})).toEqual([])
  expect(await check({})).toEqual([expect.stringMatching(/^ok \| every row/)])
})

test('warns until HMACs are demanded, and names the command', async () => {
  expect(await check({ isDemanded: false, unverified: [unsigned('devices/a')] })).toEqual([
    expect.stringMatching(/^warn \| rows without an HMAC are accepted \(1 now\).*\| upgrade every node, and then run sluice cluster sign$/),
  ])
})

test('names rows that are refused, also before HMACs are demanded', async () => {
  expect(await check({ unverified: [unsigned('devices/a'), forged('config/2')] })).toEqual([
    expect.stringMatching(
      /^fail \| rows of the database are refused: devices\/a \(not signed\); config\/2 \(its HMAC is wrong\) \| .*sluice cluster sign$/,
    ),
  ])
  expect(await check({ isDemanded: false, unverified: [unsigned('devices/a'), forged('config/2')] })).toEqual([
    expect.stringMatching(/^fail \| rows of the database are refused: config\/2/),
    expect.stringMatching(/^warn/),
  ])
  expect((await check({ unverified: Array.from({ length: 7 }, (_, at) => forged(`devices/${at}`)) }))[0]).toContain('and 2 more')
})

test('tells that the configuration is older than the one this machine has read', async () => {
  expect(await check({ configVersion: 2, configSeen: 5 })).toEqual([
    expect.stringMatching(/^fail \| the newest configuration .* version 2.* version 5/),
  ])
})
