/** One approval that waits, with what exactly would run, and the decision. */

import { useState } from 'preact/hooks'
import type { Got } from '../data/api.ts'
import { answered, api } from '../data/api.ts'
import { refresh } from '../data/queries.ts'
import { Badge } from './parts.tsx'
import { Person } from './person.tsx'
import { Name, Text } from './text.tsx'
import { attempt } from './toast.tsx'
import { Time } from './values.tsx'

export type Approval = Got<'/api/approvals'>['approvals'][number]

export async function decide(
  { run_id, step_id }: Pick<Approval, 'run_id' | 'step_id'>,
  approved: boolean,
  feedback?: string,
): Promise<void> {
  await attempt(
    () =>
      answered(
        api.POST('/api/approvals/{run}/{step}', {
          params: { path: { run: run_id, step: step_id } },
          body: { approved, ...(feedback && { feedback }) },
        }),
      ),
    approved ? 'Approved.' : 'Rejected.',
  )
  await refresh('/api/approvals', '/api/overview', '/api/sops')
}

export function ApprovalCard({ approval }: { readonly approval: Approval }) {
  const [feedback, setFeedback] = useState('')
  const [isBusy, setBusy] = useState(false)
  const answer = async (approved: boolean) => {
    setBusy(true)
    await decide(approval, approved, feedback)
    setBusy(false)
  }
  const { title, message, workflow_name, gate, state, created_at, expires_at } = approval
  return (
    <article class="approval">
      <div class="row">
        <h3 class="grow">
          <Name value={title} />
        </h3>
        <Badge state={state} />
      </div>
      <p class="quiet">
        {gate === 'tool' ? 'Tool call' : gate === 'sop' ? 'Procedure' : 'Event'} · <Name value={workflow_name} /> · asked{' '}
        <Time at={created_at} />
        {expires_at && (
          <>
            {' '}
            · expires <Time at={expires_at} />
          </>
        )}
      </p>
      <div class="block">
        <Text value={message} />
      </div>
      {state === 'pending' ? (
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault()
          }}
        >
          <input
            class="grow"
            dir="auto"
            placeholder="A word to the agent (optional)"
            aria-label="A word to the agent"
            value={feedback}
            maxLength={2000}
            onInput={({ currentTarget }) => setFeedback(currentTarget.value)}
          />
          <button type="button" disabled={isBusy} onClick={() => void answer(false)}>
            Reject
          </button>
          <button type="button" class="primary" disabled={isBusy} onClick={() => void answer(true)}>
            Approve
          </button>
        </form>
      ) : (
        <p class="quiet">
          {approval.by && (
            <>
              by <Person by={approval.by} />{' '}
            </>
          )}
          <Time at={approval.decided_at} />
          {approval.feedback && (
            <>
              : <Name value={approval.feedback} />
            </>
          )}
        </p>
      )}
    </article>
  )
}
