/** The approvals: those that wait, and those that were decided. */
import { useApi } from '../data/queries.ts'
import { placeQuery, setPlaceQuery } from '../data/router.ts'
import { ApprovalCard } from '../ui/approval.tsx'
import { Choose } from '../ui/controls.tsx'
import { Pager, usePaging } from '../ui/pages.tsx'
import { Card, Empty, Loaded, Page } from '../ui/parts.tsx'

const STATES = ['pending', 'approved', 'rejected', 'expired', 'cancelled'] as const

export function Approvals() {
  const asked = placeQuery().get('state')
  const state = asked === 'all' ? undefined : (STATES.find((one) => one === asked) ?? 'pending')
  const paging = usePaging<string>(state ?? 'all')
  const approvals = useApi('/api/approvals', {
    query: { limit: '30', ...(state && { state }), ...(paging.before !== undefined && { cursor: paging.before }) },
  })
  return (
    <Page title="Approvals" about="What is shown is exactly what runs when you approve it. The first answer counts, whoever gives it.">
      <div class="filters">
        <Choose label="State" value={state ?? 'all'} options={[...STATES, 'all']} onChange={(value) => setPlaceQuery({ state: value })} />
      </div>
      <Card title={state === 'pending' ? 'Waiting' : 'Approvals'}>
        <Loaded query={approvals}>
          {({ approvals: rows, next }) => (
            <>
              <div class="body stack">
                {rows.length === 0 ? (
                  <Empty>{state === 'pending' ? 'Nothing waits for you.' : 'None.'}</Empty>
                ) : (
                  rows.map((approval) => <ApprovalCard key={`${approval.run_id}/${approval.step_id}`} approval={approval} />)
                )}
              </div>
              <Pager paging={paging} next={next} />
            </>
          )}
        </Loaded>
      </Card>
    </Page>
  )
}
