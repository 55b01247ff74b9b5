/** What `/api/approvals` answers and `sluice approvals` prints as JSON. */

import { isoTime } from '@sluice/kit'
import type { Approval } from '@sluice/sdk'
import * as v from 'valibot'

export const APPROVAL_STATES = ['pending', 'approved', 'rejected', 'expired', 'cancelled'] as const

const nullableText = v.nullable(v.string())

export const approvalSchema = v.object({
  run_id: v.string(),
  step_id: v.string(),
  gate: v.pipe(
    v.picklist(['sop', 'tool', 'event']),
    v.description('Who waits: a procedure, a tool call, or a program that posted an event'),
  ),
  workflow_name: v.string(),
  title: v.string(),
  message: v.string(),
  call_sha256: v.pipe(nullableText, v.description('Of a tool call: its tool and exact input; the decision counts for that call alone')),
  state: v.picklist(APPROVAL_STATES),
  by: v.pipe(nullableText, v.description('`<channel>:<sender>`, `device:<id>`, `cli:<user>`, `timeout`, `system`')),
  feedback: nullableText,
  approve_keywords: v.array(v.string()),
  reject_keywords: v.array(v.string()),
  created_at: v.string(),
  expires_at: v.pipe(nullableText, v.description('null: it waits for ever')),
  decided_at: nullableText,
  settled_at: v.pipe(nullableText, v.description('When whoever waits had taken the decision')),
  prompts: v.pipe(
    v.array(
      v.object({
        outbox: v.number(),
        channel: v.string(),
        account: v.string(),
        to: v.string(),
        thread: nullableText,
        provider_id: nullableText,
      }),
    ),
    v.description('The messages that ask'),
  ),
})

export const shownApproval = (approval: Approval): v.InferOutput<typeof approvalSchema> => ({
  run_id: approval.runId,
  step_id: approval.stepId,
  gate: approval.gate,
  workflow_name: approval.workflow,
  title: approval.title,
  message: approval.message,
  call_sha256: approval.callHash,
  state: approval.state,
  by: approval.by,
  feedback: approval.feedback,
  approve_keywords: [...approval.approveKeywords],
  reject_keywords: [...approval.rejectKeywords],
  created_at: isoTime(approval.createdAtMs),
  expires_at: isoTime(approval.expiresAtMs),
  decided_at: isoTime(approval.decidedAtMs),
  settled_at: isoTime(approval.settledAtMs),
  prompts: approval.prompts.map(({ number, channel, account, to, providerId }) => ({
    outbox: number,
    channel,
    account,
    to: to.to,
    thread: to.thread ?? null,
    provider_id: providerId,
  })),
})
