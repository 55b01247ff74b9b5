import * as v from 'valibot'
import { expect, test } from 'vitest'
import { sopSection, sopsFolder } from './config.ts'

test('everything has a default', () => {
  expect(v.parse(sopSection.schema, {})).toEqual({
    sops_dir: 'sops',
    default_execution_mode: 'supervised',
    max_concurrent_total: 4,
    approval_timeout_secs: 300,
    max_finished_runs: 100,
  })
})

test.each([
  ['sops', '/srv/space/sops'],
  ['../shared/./sops', '/srv/shared/sops'],
  ['/srv/sops', '/srv/sops'],
  ['~', '/home/ada'],
  ['~/sops', '/home/ada/sops'],
  ['~sops', '/srv/space/~sops'],
])('the folder is found from the workspace, from home or from the root: %s', (sops_dir, folder) => {
  expect(sopsFolder({ sops_dir }, { workspace: '/srv/space', home: '/home/ada' })).toBe(folder)
})
