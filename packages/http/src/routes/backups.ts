/** `/api/backups`: the last backup and the schedule. */
import { backupRecordSchema, readRecord } from '@sluice/backup'
import { backupSection } from '@sluice/config'
import type { Runtime } from '@sluice/runtime'
import { defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'

const pageSchema = v.object({
  ...backupRecordSchema.entries,
  schedule: v.pipe(v.nullable(v.string()), v.description('`[backup] schedule`; null if the daemon makes no backups')),
})

export const backupsRoute = ({ dataDir, snapshot }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/backups',
    summary: 'The last backup, the failure of a later attempt, and the schedule',
    auth: 'operator',
    answers: { 200: { description: 'The backups', schema: pageSchema } },
    handle: () => ({ ...readRecord(dataDir), schedule: snapshot().config.core(backupSection).schedule ?? null }),
  })
