/** The conversations of all people, for operators. Opening one that belongs to another person is recorded in the audit log first. */
import { useState } from 'preact/hooks'
import { answered, api, type Got, get } from '../data/api.ts'
import { refresh, useApi } from '../data/queries.ts'
import { placeQuery, setPlaceQuery, to, useParams } from '../data/router.ts'
import { ChannelName } from '../ui/channel-name.tsx'
import { Act, Ask, Choose } from '../ui/controls.tsx'
import { confirmed } from '../ui/dialog.tsx'
import { Files, returnedFiles } from '../ui/files.tsx'
import { FoundWords } from '../ui/found-words.tsx'
import { Message } from '../ui/message.tsx'
import { Pager, usePaging } from '../ui/pages.tsx'
import { Badge, Card, Facts, Loaded, Note, Page, Problem } from '../ui/parts.tsx'
import { Person, THIS_BROWSER, useDeviceNames } from '../ui/person.tsx'
import { RichText } from '../ui/rich-text.tsx'
import { Table } from '../ui/table.tsx'
import { integer, Line, MonoName, Name, Text } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'
import { dateText, Time } from '../ui/values.tsx'

const ROWS = '50'
const WORDS = 'messages'
const MESSAGES_MAX = 200

type Listed = Got<'/api/sessions'>['sessions'][number]
type Shown = Got<'/api/sessions/{id}/messages'>['messages'][number]

export function Conversations() {
  const query = placeQuery()
  const channel = query.get('channel') ?? ''
  const sender = channel === '' ? '' : (query.get('sender') ?? '')
  const find = query.get('find') ?? ''
  const place = query.get('in') === WORDS ? WORDS : ''
  const deviceName = useDeviceNames()
  const paging = usePaging<string>(`${channel}|${sender}|${find}`)
  const set = (values: Readonly<Record<string, string>>) => setPlaceQuery({ channel, sender, find, in: place, ...values })
  /** The person on a channel, or the device. */
  const whose = ({ session_id, sender: who }: Pick<Listed, 'session_id' | 'sender'>): string =>
    who ?? (session_id.includes('/') ? deviceName(session_id.split('/').at(-2) ?? '') : THIS_BROWSER)
  const scope = { ...(channel === '' ? { all: 'true' as const } : { channel }), ...(sender && { sender }) }
  const isForWords = place === WORDS && find !== ''
  const list = useApi(
    '/api/sessions',
    {
      query: {
        limit: ROWS,
        ...scope,
        ...(find && { find }),
        ...(paging.before !== undefined && { cursor: paging.before }),
      },
    },
    { enabled: !isForWords },
  )
  return (
    <Page
      title="Conversations"
      about="Of everybody. The list shows no message; opening the conversation of another person is recorded in the audit log."
    >
      <div class="filters">
        <Ask label="Channel" value={channel} placeholder="any" onChange={(value) => set({ channel: value })} />
        {channel !== '' && <Ask label="Sender" value={sender} placeholder="any" onChange={(value) => set({ sender: value })} />}
        <Choose
          label="Find in"
          value={place}
          options={[
            ['', 'titles and people'],
            [WORDS, 'messages'],
          ]}
          onChange={(value) => set({ in: value })}
        />
        <Ask
          label="Find"
          value={find}
          placeholder={place === WORDS ? 'words of a message' : 'a title or person'}
          onChange={(value) => set({ find: value })}
        />
      </div>
      {isForWords ? (
        <AgreedSearch key={JSON.stringify([find, scope])} words={find} scope={scope} whose={whose} />
      ) : (
        <Card title="Conversations">
          <Loaded query={list}>
            {({ sessions, next }) => (
              <>
                <Table
                  label="Conversations"
                  rows={sessions}
                  keyOf={({ session_id }) => session_id}
                  empty="No conversation."
                  columns={[
                    {
                      name: 'Conversation',
                      heads: true,
                      show: ({ session_id, name, sender: who, created_at }) => (
                        <a href={to('conversations', session_id)} title={session_id}>
                          <Line value={name ?? (who === null ? `Conversation of ${dateText(created_at)}` : `With ${who}`)} />
                        </a>
                      ),
                    },
                    { name: 'Channel', show: ({ channel: name }) => name && <ChannelName channel={name} /> },
                    { name: 'Person', show: (session) => <Line value={whose(session)} /> },
                    { name: 'Agent', show: ({ agent }) => <Name value={agent} /> },
                    { name: 'Messages', number: true, show: ({ message_count }) => integer(message_count) },
                    { name: 'Last active', show: ({ last_activity }) => <Time at={last_activity} /> },
                  ]}
                />
                <Pager paging={paging} next={next} />
              </>
            )}
          </Loaded>
        </Card>
      )}
    </Page>
  )
}

interface AgreedSearchProps {
  readonly words: string
  readonly scope: Readonly<Record<string, string>>
  readonly whose: (session: Pick<Listed, 'session_id' | 'sender'>) => string
}

/** Shows words of other people only after the operator agreed. */
function AgreedSearch({ words, scope, whose }: AgreedSearchProps) {
  const [isAgreed, setAgreed] = useState(false)
  if (!isAgreed)
    return (
      <Note tone="warn">
        <div class="row spread">
          <span>The search shows words of other people. The audit log records each of their conversations that it shows.</span>
          <button type="button" class="primary" onClick={() => setAgreed(true)}>
            Search, and record that
          </button>
        </div>
      </Note>
    )
  return (
    <FoundWords
      words={words}
      scope={scope}
      whose={whose}
      hrefOf={({ session_id, up_to }) => `${to('conversations', session_id)}?up_to=${up_to}`}
    />
  )
}

/** Nothing of the conversation is asked for until a person says so. */
export function ConversationPage() {
  const { id = '' } = useParams<{ id: string }>()
  const [messages, setMessages] = useState<readonly Shown[] | undefined>()
  const [problem, setProblem] = useState<unknown>()
  const isOwn = !id.includes('/')
  const upTo = placeQuery().get('up_to')
  const show = async () => {
    setProblem(undefined)
    try {
      const query = { limit: String(MESSAGES_MAX), ...(upTo !== null && { up_to: upTo }) }
      setMessages((await get('/api/sessions/{id}/messages', { path: { id }, query })).messages)
      await refresh('/api/sops/audit')
    } catch (error) {
      setProblem(error)
    }
  }
  const erase = async () => {
    if (
      !(await confirmed(
        'Erase this conversation?',
        'Its messages, and the contents of its turns and replies, are erased for good.',
        'Erase',
      ))
    )
      return
    const done = await attempt(() => answered(api.DELETE('/api/sessions/{id}', { params: { path: { id } } })), 'Erased.')
    if (!done) return
    location.hash = '#/conversations'
    await refresh('/api/sessions')
  }
  return (
    <Page
      title="Conversation"
      about={<a href="#/conversations">All conversations</a>}
      actions={
        <Act class="danger" work={erase}>
          Erase
        </Act>
      }
    >
      <Card title="Whose it is" padded>
        <Facts
          rows={[
            ['Person', isOwn ? THIS_BROWSER : <Person key="person" by={id.split('/').at(-2) ?? id} />],
            [
              'Turns',
              <a key="turns" href={`#/turns?${new URLSearchParams({ session: id })}`}>
                The turns of this conversation
              </a>,
            ],
            ['Id', <Name key="id" value={id} />],
          ]}
        />
      </Card>
      {problem !== undefined && <Problem error={problem} retry={show} />}
      {messages === undefined ? (
        <Note tone={isOwn ? 'info' : 'warn'}>
          <div class="row spread">
            <span>
              {isOwn
                ? 'This is a conversation of this browser.'
                : 'This conversation belongs to another person. The audit log records that you open it.'}
            </span>
            <Act class="primary" work={show}>
              {isOwn ? 'Open it' : 'Open it, and record that'}
            </Act>
          </div>
        </Note>
      ) : (
        <Card title={`${upTo === null ? 'The last' : 'Up to the place that was found:'} ${integer(messages.length)} messages`} padded>
          <div class="column">
            {messages.map((message, index) => (
              <MessageView key={index} session={id} message={message} />
            ))}
          </div>
        </Card>
      )}
    </Page>
  )
}

function MessageView({
  session,
  message: { role, content, untrusted, tool_calls = [], tool_results = [] },
}: {
  readonly session: string
  readonly message: Shown
}) {
  const isPerson = role === 'user'
  return (
    <>
      {content !== '' && (
        <article class={`said ${isPerson ? 'person' : 'answer'}`} aria-label={isPerson ? 'Person' : 'Agent'}>
          {untrusted !== undefined && (
            <p>
              <Badge state="has text from outside" tone="warn" /> <Name value={untrusted} />
            </p>
          )}
          {isPerson ? <Message text={content} session={session} /> : <RichText value={content} />}
          {!isPerson && <Files session={session} files={returnedFiles(content)} isStored />}
        </article>
      )}
      {tool_calls.map(({ id, name, input }) => (
        <details key={id} class="said tool">
          <summary>
            <MonoName value={name} />
          </summary>
          <div class="block mono">
            <Text value={JSON.stringify(input, null, 2) ?? ''} />
          </div>
        </details>
      ))}
      {tool_results.map(({ id, name, output }) => (
        <details key={id} class="said tool">
          <summary>
            Result of <MonoName value={name} />
          </summary>
          <div class="block mono">
            <Text value={typeof output === 'string' ? output : (JSON.stringify(output, null, 2) ?? '')} />
          </div>
        </details>
      ))}
    </>
  )
}
