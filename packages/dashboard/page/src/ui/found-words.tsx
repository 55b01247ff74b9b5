/** The turns in whose messages words were found, each with its place. */
import type { Got } from '../data/api.ts'
import { useApi } from '../data/queries.ts'
import { Pager, usePaging } from './pages.tsx'
import { Card, Loaded } from './parts.tsx'
import { Table } from './table.tsx'
import { Line, Text } from './text.tsx'
import { Time } from './values.tsx'

type Found = Got<'/api/messages'>['found'][number]

interface FoundWordsProps {
  readonly words: string
  /** The filter of the conversations; empty for those of this browser. */
  readonly scope?: Readonly<Record<string, string>>
  readonly whose: (found: Found) => string
  readonly hrefOf: (found: Found) => string
}

export function FoundWords({ words, scope = {}, whose, hrefOf }: FoundWordsProps) {
  const paging = usePaging<string>(words)
  const found = useApi('/api/messages', {
    query: { find: words, ...scope, ...(paging.before !== undefined && { cursor: paging.before }) },
  })
  return (
    <Card title="Found in messages">
      <Loaded query={found}>
        {({ found: rows, next }) => (
          <>
            <Table
              label="Messages with these words"
              rows={rows}
              keyOf={({ session_id, up_to }) => `${session_id} ${up_to}`}
              empty={next === null ? 'No message has these words.' : 'None of these messages has the words; older ones may.'}
              columns={[
                {
                  name: 'Message',
                  heads: true,
                  show: (one) => (
                    <a href={hrefOf(one)}>
                      <Text value={one.text} />
                    </a>
                  ),
                },
                { name: 'Written by', show: (one) => (one.role === 'assistant' ? 'the agent' : <Line value={whose(one)} />) },
                { name: 'Time', show: ({ at }) => <Time at={at} /> },
              ]}
            />
            <Pager paging={paging} next={next} />
          </>
        )}
      </Loaded>
    </Card>
  )
}
