/** Every feature, whether this build has it, and the command that builds it in. */
import { useApi } from '../data/queries.ts'
import { placeQuery, setPlaceQuery } from '../data/router.ts'
import { Ask, BuildCommand, Choose } from '../ui/controls.tsx'
import { Badge, Card, Loaded, Page } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { Line } from '../ui/text.tsx'

export function Features() {
  const features = useApi('/api/features', {})
  const query = placeQuery()
  const state = query.get('state') ?? ''
  const word = query.get('find') ?? ''
  return (
    <Page title="Features" about="What this build contains. A feature that is left out names the command that builds it in.">
      <Loaded query={features}>
        {({ features: rows }) => (
          <>
            <div class="filters">
              <Ask label="Find" value={word} onChange={(value) => setPlaceQuery({ state, find: value })} />
              <Choose
                label="State"
                value={state}
                options={[['', 'all'], ...new Set(rows.map((row) => row.state))]}
                onChange={(value) => setPlaceQuery({ state: value, find: word })}
              />
            </div>
            <Card title="Features">
              <Table
                label="Features"
                rows={rows.filter((row) => (state === '' || row.state === state) && row.feature.includes(word.toLowerCase()))}
                keyOf={({ feature }) => feature}
                empty="No feature has this name and state."
                columns={[
                  { name: 'Feature', heads: true, show: ({ feature }) => feature },
                  { name: 'Kind', show: ({ kind }) => kind },
                  { name: 'State', show: (row) => <Badge state={row.state} /> },
                  {
                    name: 'Reason',
                    show: ({ reason, build }) =>
                      (reason || build) && (
                        <div>
                          {reason && <Line value={reason} />}
                          {build && <BuildCommand command={build} />}
                        </div>
                      ),
                  },
                ]}
              />
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  )
}
