import type { ClusterNode, NodeFolder } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { compareNodes } from './compare-nodes.ts'

const folder = (given: Partial<NodeFolder>): NodeFolder => ({
  name: 'workspace',
  path: '/mnt/workspace',
  mark: null,
  seen: null,
  digest: null,
  isUsable: true,
  problem: null,
  ...given,
})

const node = (name: string, given: Partial<NodeFolder> | null, state: ClusterNode['state'] = 'up') => ({
  node: name,
  state,
  report: given && { folders: [folder(given)], programs: [] },
})

const mark = (id: string, count = 5) => ({ id, count })

test('nodes are together that a third one joins, and others are named in groups', () => {
  const a = node('a', { mark: mark('1'), seen: {} })
  const b = node('b', { mark: mark('2'), seen: { a: mark('1') } })
  const c = node('c', { mark: mark('3'), seen: { b: mark('2', 2) } })
  const d = node('d', { mark: mark('4'), seen: {} })
  expect(compareNodes([a, b, c])).toEqual([])
  expect(compareNodes([d, a, c, b])).toEqual([
    {
      state: 'failing',
      text: expect.stringContaining('(d | a, c, b)'),
      fix: 'mount one folder on all nodes as /mnt/workspace',
    },
  ])
})

test('a mark of an earlier process, or an old one of the same process, proves nothing', () => {
  const a = node('a', { mark: mark('new', 50), seen: {} })
  for (const seen of [mark('old', 50), mark('new', 46)])
    expect(compareNodes([a, node('b', { mark: mark('2'), seen: { a: seen } })])).toHaveLength(1)
  expect(compareNodes([a, node('b', { mark: mark('2'), seen: { a: mark('new', 47) } })])).toEqual([])
})

test('nodes that are dead or leave, or have reported nothing, are not compared', () => {
  const a = node('a', { mark: mark('1'), seen: {} })
  const apart = { mark: mark('2'), seen: {} }
  expect(compareNodes([a, node('b', apart, 'dead'), node('c', apart, 'leaving'), node('d', null)])).toEqual([])
  expect(compareNodes([a, node('b', apart, 'drained')])).toHaveLength(1)
})

test('folders of copies are compared by their content, with the key that names a shared one', () => {
  const of = (name: string, digest: string | null) => node(name, { name: 'skills', path: '/data/skills', digest })
  expect(compareNodes([of('a', 'x'), of('b', 'x')])).toEqual([])
  expect(compareNodes([of('a', 'x'), of('b', 'y'), of('c', 'x'), of('d', null)])).toEqual([
    {
      state: 'failing',
      text: 'The skills differ between nodes: a, c | b.',
      fix: 'give all nodes the same files in /data/skills, or mount one folder there (skills.skills_dir)',
    },
  ])
})

test('a folder that does not answer is a failure, and one that cannot be written to a warning', () => {
  const a = node('a', { mark: mark('1'), seen: {} })
  expect(compareNodes([a, node('b', { isUsable: false, problem: 'it does not answer within 10 s' })])).toEqual([
    {
      state: 'failing',
      text: 'b cannot use its folder of workspace (/mnt/workspace): it does not answer within 10 s.',
      fix: 'mount the folder on b again',
    },
  ])
  expect(compareNodes([node('b', { problem: 'EROFS', seen: {} }), node('c', { problem: 'EROFS', seen: {} })])).toMatchObject([
    { state: 'warning', text: 'b cannot write to its folder of workspace (/mnt/workspace): EROFS.' },
    { state: 'warning' },
  ])
})

test('a folder that could be reached and not compared is a warning', () => {
  const problem = 'there are more than 50000 files and folders'
  expect(compareNodes([node('a', { name: 'skills', path: '/data/skills', problem })])).toMatchObject([
    { state: 'warning', text: `a cannot compare its folder of skills (/data/skills): ${problem}.` },
  ])
})
