import * as v from 'valibot'
import { expect, test } from 'vitest'
import { sopSection, sopsFolders } from './sop-section.ts'

test('everything has a default', () => {
  expect(v.parse(sopSection.schema, {})).toEqual({
    sops_dir: 'sops',
    take_over: false,
    default_execution_mode: 'supervised',
    max_concurrent_total: 4,
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
])(
  'the folders are found from the data directory, from home or from the root, and in the workspace: %s',
  (sops_dir, meant, inWorkspace) => {
    const roots = { dataDir: '/data', workspace: '/srv/space', home: '/home/ada' }
    expect(sopsFolders({ sops_dir }, roots)).toEqual([meant, inWorkspace])
  },
)
