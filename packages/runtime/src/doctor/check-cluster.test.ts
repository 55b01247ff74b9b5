import { CLUSTER_ROLES, type ClusterNode, SHARDS } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { checkCluster } from './check-cluster.ts'

const node = (name: string, given: Partial<ClusterNode> = {}): ClusterNode => ({
  name: 'main',
  node: name,
  roles: CLUSTER_ROLES,
  url: null,
  version: '1.0.0',
  state: 'up',
  silentMs: 900,
  startedAtMs: 0,
  clockOffsetMs: 12,
  schemaVersion: 5,
  configVersion: 3,
  keyId: 'aaaaaaaa',
  shards: SHARDS / 2,
  leases: [],
  report: null,
  ...given,
})

const check = async (...nodes: ClusterNode[]) =>
  (await checkCluster({ name: 'main', nodes: async () => nodes })).map(({ status, detail, fix }) => [status, detail, fix].join(' | '))

test('a cluster whose nodes agree is one line, and a daemon on its own has none', async () => {
  expect(await check(node('a'), node('b'))).toEqual(['ok | main: a, b | '])
  expect(await checkCluster(undefined)).toEqual([])
})

test('dead and drained nodes, and shards without an owner, are warnings with a cure', async () => {
  expect(await check(node('a', { state: 'dead', silentMs: 12_300, shards: 0 }), node('b'))).toEqual([
    expect.stringMatching(/^warn \| a has given no sign of life for 12 s \| start it again/),
    expect.stringMatching(/^warn \| 128 of 256 shards have no owner now/),
  ])
  expect(await check(node('a', { state: 'drained', shards: 0 }), node('b', { shards: SHARDS }))).toEqual([
    'warn | a is drained, and owns nothing | sluice cluster undrain a',
  ])
})

test('each node with a wrong clock is named', async () => {
  const clocks = [1_000, 3_600_000, -90_500, null].map((clockOffsetMs, at) => node('abcd'[at] ?? '', { clockOffsetMs, shards: SHARDS / 4 }))
  expect(await check(...clocks)).toEqual([
    expect.stringMatching(/^warn \| the clock of b is 3600\.0 s ahead of that of the database \| let its machine/),
    expect.stringMatching(/^warn \| the clock of c is 90\.5 s behind that of the database \| let its machine/),
  ])
})

test('another key is a failure; another release and an older configuration are warnings', async () => {
  expect(await check(node('a'), node('b', { keyId: 'bbbbbbbb' }))).toEqual([
    expect.stringMatching(/^fail \| nodes have different keys for secrets \(aaaaaaaa: a; bbbbbbbb: b\)/),
  ])
  expect(await check(node('a'), node('b', { version: '1.1.0' }))).toEqual([
    expect.stringMatching(/^warn \| nodes run different releases \(1\.0\.0: a; 1\.1\.0: b\)/),
  ])
  expect(await check(node('a'), node('b', { configVersion: 2 }))).toEqual([
    expect.stringMatching(/^warn \| b without version 3 of the configuration/),
  ])
})
