/** The people with linked accounts (docs/people.md): what the accounts of each share, and the end of a link. */
import { useState } from 'preact/hooks'
import { answered, api, type Got } from '../data/api.ts'
import { refresh, useApi } from '../data/queries.ts'
import { go, to, useParams } from '../data/router.ts'
import { Act } from '../ui/controls.tsx'
import { confirmed } from '../ui/dialog.tsx'
import { Card, Facts, Loaded, Page } from '../ui/parts.tsx'
import { useDeviceNames } from '../ui/person.tsx'
import { Table } from '../ui/table.tsx'
import { integer, Line, MonoName, Name } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'
import { Time } from '../ui/values.tsx'

type Person = Got<'/api/people'>['people'][number]
type Account = Person['accounts'][number]

/** Returns what names an account: the name of its sender or device, and the channel. The id is shown on request. */
function useAccountNames(): (account: Account) => string {
  const deviceName = useDeviceNames()
  return ({ account, name, channel, shown }) => {
    if (channel !== null) return `${name} · ${channel}`
    return account.startsWith('device:') ? deviceName(account) : shown
  }
}

export function People() {
  const people = useApi('/api/people', {})
  const nameOf = useAccountNames()
  return (
    <Page title="People" about="People who linked accounts of several platforms. An account without a link is a person of its own.">
      <Card title="Linked people">
        <Loaded query={people}>
          {({ people: rows }) => (
            <Table
              label="Linked people"
              rows={rows}
              keyOf={({ owner }) => owner}
              empty="No accounts are linked. A person writes /link to the agent in a direct chat, and the code in another one."
              columns={[
                {
                  name: 'Person',
                  heads: true,
                  show: ({ owner, accounts: [first] }) => (
                    <a href={to('people', owner)}>
                      <Line value={first ? nameOf(first) : owner} />
                    </a>
                  ),
                },
                { name: 'Linked with', show: ({ accounts: [, ...others] }) => <Line value={others.map(nameOf).join(', ')} /> },
                { name: 'Accounts', number: true, show: ({ accounts }) => integer(accounts.length) },
                {
                  name: 'Last link',
                  show: ({ accounts }) => (
                    <Time
                      at={accounts
                        .map((one) => one.linked_at)
                        .toSorted()
                        .at(-1)}
                    />
                  ),
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  )
}

export function PersonPage() {
  const { account = '' } = useParams<{ account: string }>()
  const person = useApi('/api/people/{account}', { path: { account } })
  const nameOf = useAccountNames()
  const [first] = person.data?.accounts ?? []
  return (
    <Page title={first ? nameOf(first) : 'Person'} about={<a href="#/people">All people</a>}>
      <Loaded query={person}>
        {(data) => (
          <>
            <Card title="Shared" padded>
              <Facts
                rows={[
                  ['Memories', first ? <>those of {<Name value={nameOf(first)} />}, for all accounts</> : ''],
                  ['Limits and shares', 'turns, dollars, streams, downloads and kept attachments of all accounts count together'],
                  ['Standing', 'of each account alone, until two accounts have confirmed each other'],
                  ['Conversations and files', 'not shared: they stay with each account'],
                ]}
              />
            </Card>
            <Accounts person={data} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Accounts({ person }: { readonly person: Person }) {
  const nameOf = useAccountNames()
  const [hasIds, setHasIds] = useState(false)
  const { accounts } = person
  const namesOf = (keys: readonly string[]) => accounts.filter(({ account }) => keys.includes(account)).map(nameOf)
  return (
    <Card
      title="Accounts"
      actions={
        <button type="button" class="small" aria-pressed={hasIds} onClick={() => setHasIds(!hasIds)}>
          Show the ids
        </button>
      }
    >
      <Table
        label="Accounts of this person"
        rows={accounts}
        keyOf={({ account }) => account}
        empty=""
        columns={[
          { name: 'Account', heads: true, show: (one) => <Line value={nameOf(one)} /> },
          ...(hasIds ? [{ name: 'Id', show: ({ account }: Account) => <MonoName value={account} /> }] : []),
          { name: 'Linked', show: ({ linked_at }) => <Time at={linked_at} /> },
          {
            name: 'Shares its standing with',
            show: ({ confirmed: keys }) => (keys.length > 0 ? <Line value={namesOf(keys).join(', ')} /> : 'no other account'),
          },
          {
            name: 'Actions',
            quietName: true,
            show: (one) => (
              <Act class="small danger" work={() => unlink(person, one.account, nameOf(one))}>
                Unlink
              </Act>
            ),
          },
        ]}
      />
    </Card>
  )
}

async function unlink({ owner, accounts }: Person, account: string, name: string): Promise<void> {
  const isAgreed = await confirmed(
    `Unlink ${name}?`,
    account === owner
      ? 'It keeps the memories, and the other accounts begin with their own. It is a person of its own from the next message on.'
      : 'It loses the memories and the standing of the other accounts at once, and gets back those that it had before.',
    'Unlink',
  )
  if (!isAgreed) return
  const done = await attempt(() => answered(api.DELETE('/api/people/{account}', { params: { path: { account } } })), 'Unlinked.')
  if (!done) return
  const left = accounts.filter((one) => one.account !== account)
  const [next] = left
  // The place of a person is named by an account, which must be one that is still linked.
  go(next && left.length > 1 ? to('people', next.account).slice(1) : '/people')
  await refresh('/api/people')
}
