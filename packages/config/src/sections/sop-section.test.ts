import * as v from 'valibot'
import { expect, test } from 'vitest'
import { sopSection, sopsFolders } from './sop-section.ts'

test('every key of [sop] has a default', () => {
  expect(v.parse(sopSection.schema, {})).toEqual({
    sops_dir: 'sops',
    take_over: false,
    default_execution_mode: 'supervised',
    max_concurrent_total: 0,
    approval_timeout_secs: 300,
    max_finished_runs: 100,
  })
})

test.each([
  ['sops', '/data/sops', '/srv/space/sops'],
  ['../shared/./sops', '/shared/sops', '/srv/shared/sops'],
  ['/srv/sops', '/srv/sops', '/srv/space/sops'],
  ['~', '/home/ada', '/srv/space/sops'],
  ['~/sops', '/home/ada/sops', '/srv/space/sops'],
  ['~sops', '/data/~sops', '/srv/space/~sops'],
])('resolves the folders against the data directory, home, root and workspace: %s', (sops_dir, configured, inWorkspace) => {
  const roots = { dataDir: '/data', workspace: '/srv/space', home: '/home/ada' }
  expect(sopsFolders({ sops_dir }, roots)).toEqual([configured, inWorkspace])
})
