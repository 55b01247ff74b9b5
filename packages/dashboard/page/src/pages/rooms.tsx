/** The rooms: conversations of several people on channels, the rule of each, and a transcript that is played against it. */
import { useState } from 'preact/hooks'
import { answered, api, type Got } from '../data/api.ts'
import type { operations } from '../data/api-types.ts'
import { refresh, useApi, useOverview } from '../data/queries.ts'
import { go, to, useParams } from '../data/router.ts'
import { ChannelName } from '../ui/channel-name.tsx'
import { Act, Choose, Field } from '../ui/controls.tsx'
import { confirmed } from '../ui/dialog.tsx'
import { Badge, Card, Facts, Loaded, Note, Page, Problem } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { integer, Line, Name } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'
import { Time } from '../ui/values.tsx'

type Room = Got<'/api/rooms'>['rooms'][number]
type Rule = Room['rule']

const ROOM = '/api/rooms/{id}'

const RESPONDS: Readonly<Record<Room['respond'], string>> = {
  mention: 'to messages that address it',
  always: 'to every message',
  never: 'never',
  judge: 'when it has something to say',
}
const SESSIONS: Readonly<Record<Room['session'], string>> = {
  shared: 'one for all people of the room',
  person: 'one for each person',
}

const choices = (words: Readonly<Record<string, string>>): readonly (readonly [string, string])[] => [
  ['', 'as its channel says'],
  ...Object.entries(words),
]

export function Rooms() {
  const rooms = useApi('/api/rooms', {})
  return (
    <Page title="Rooms" about="Conversations of several people on a channel, and the rule of each.">
      <Card title="Rooms">
        <Loaded query={rooms}>
          {({ rooms: rows }) => (
            <Table
              label="Rooms"
              rows={rows}
              keyOf={({ room }) => room}
              empty="No room yet. A room is listed once its people have a conversation, or once it has a rule."
              columns={[
                {
                  name: 'Room',
                  heads: true,
                  show: ({ room, conversation }) => (
                    <a href={to('rooms', room)}>
                      <Line value={conversation} />
                    </a>
                  ),
                },
                { name: 'Channel', show: ({ channel }) => <ChannelName channel={channel} /> },
                { name: 'It answers', show: ({ respond }) => RESPONDS[respond] },
                { name: 'Conversation', show: ({ session }) => SESSIONS[session] },
                { name: 'Agent', show: ({ agent }) => <Name value={agent} /> },
                { name: 'Rule', show: ({ rule }) => (Object.keys(rule).length > 0 ? 'its own' : 'of its channel') },
                { name: 'Last message', show: ({ last_activity }) => <Time at={last_activity} /> },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  )
}

export function RoomPage() {
  const { id = '' } = useParams<{ id: string }>()
  const room = useApi(ROOM, { path: { id } })
  const erase = async () => {
    const isAgreed = await confirmed(
      'Erase this room?',
      'Its rule and the conversations that its people share are deleted, with their memories, files and overheard messages.',
      'Erase',
    )
    if (!isAgreed) return
    const done = await attempt(() => answered(api.DELETE(ROOM, { params: { path: { id } } })), 'Erased.')
    await refresh('/api/rooms', '/api/sessions')
    if (done) go('/rooms')
  }
  return (
    <Page
      title={room.data?.conversation ?? 'Room'}
      about={<a href="#/rooms">All rooms</a>}
      actions={
        room.data && (
          <Act class="danger" work={erase}>
            Erase
          </Act>
        )
      }
    >
      <Loaded query={room}>
        {(data) => (
          <>
            <Card title="In force" padded>
              <Facts
                rows={[
                  ['Channel', <ChannelName key="channel" channel={data.channel} />],
                  ['Account', <Name key="account" value={data.account} />],
                  ['Answers', RESPONDS[data.respond]],
                  ['Conversation', SESSIONS[data.session]],
                  ['Agent', <Name key="agent" value={data.agent} />],
                  ['Overhears', data.overhears ? 'yes: it reads messages that do not address it, and answers with them in mind' : 'no'],
                  ['Last message', <Time key="last" at={data.last_activity} />],
                ]}
              />
            </Card>
            <RuleCard key={JSON.stringify(data.rule)} room={data} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** The members of a rule as a person writes them: lists have one entry a line. */
type Written = Readonly<
  Record<'session' | 'respond' | 'agent' | 'people' | 'tools' | 'turns_per_hour' | 'usd_per_day' | 'language', string>
>

const writtenOf = (rule: Rule): Written => ({
  session: rule.session ?? '',
  respond: rule.respond ?? '',
  agent: rule.agent ?? '',
  people: rule.people?.join('\n') ?? '',
  tools: rule.tools?.join('\n') ?? '',
  turns_per_hour: rule.turns_per_hour?.toString() ?? '',
  usd_per_day: rule.usd_per_day?.toString() ?? '',
  language: rule.language ?? '',
})

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

function ruleOf(written: Written): Rule {
  const readAs = (name: string, text: string): unknown => {
    if (name === 'people' || name === 'tools') return linesOf(text)
    return name === 'turns_per_hour' || name === 'usd_per_day' ? Number(text) : text.trim()
  }
  const given = Object.entries(written).filter(([, text]) => text.trim() !== '')
  return Object.fromEntries(given.map(([name, text]) => [name, readAs(name, text)])) as Rule
}

function RuleCard({ room }: { readonly room: Room }) {
  const overview = useOverview()
  const [written, setWritten] = useState(() => writtenOf(room.rule))
  const set = (name: keyof Written) => (value: string) => setWritten((before) => ({ ...before, [name]: value }))
  const rule = ruleOf(written)
  const save = async () => {
    const willBegin = rule.session !== room.rule.session
    const isAgreed =
      !willBegin ||
      (await confirmed(
        'Change who shares a conversation?',
        'When other people share it than before, a new conversation begins. The old one stays readable.',
        'Change it',
        false,
      ))
    if (!isAgreed) return
    await attempt(() => answered(api.PUT(ROOM, { params: { path: { id: room.room } }, body: rule })), 'The rule is in force.')
    await refresh('/api/rooms')
  }
  const agents = new Set([...(overview.data?.status.agents ?? []), ...(written.agent === '' ? [] : [written.agent])])
  return (
    <>
      <Card title="Rule" padded>
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault()
            void save()
          }}
        >
          {room.unreadable.length > 0 && (
            <Note>
              This release cannot read parts of this rule: {room.unreadable.join(', ')}. Until it is upgraded, nobody is answered here, and
              a change is refused.
            </Note>
          )}
          <p class="quiet">An empty field leaves it to the configuration of the channel.</p>
          <div class="filters">
            <Choose label="It answers" value={written.respond} options={choices(RESPONDS)} onChange={set('respond')} />
            <Choose label="Conversation" value={written.session} options={choices(SESSIONS)} onChange={set('session')} />
            <Choose
              label="Agent"
              value={written.agent}
              options={[['', 'as its channel says'], ...[...agents].map((name) => [name, name] as const)]}
              onChange={set('agent')}
            />
          </div>
          <Field label="People" hint="The only ones who are answered here, one a line. Each must be on the allowlist of the channel, too.">
            {(props) => (
              <textarea
                {...props}
                rows={3}
                dir="auto"
                value={written.people}
                onInput={({ currentTarget }) => set('people')(currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Tools" hint="The only ones that turns of the room call, one a line.">
            {(props) => (
              <textarea
                {...props}
                rows={3}
                class="mono"
                value={written.tools}
                onInput={({ currentTarget }) => set('tools')(currentTarget.value)}
              />
            )}
          </Field>
          <div class="grid">
            <Field label="Turns in an hour" hint="Of all people together.">
              {(props) => (
                <input
                  {...props}
                  type="number"
                  min="1"
                  step="1"
                  value={written.turns_per_hour}
                  onInput={({ currentTarget }) => set('turns_per_hour')(currentTarget.value)}
                />
              )}
            </Field>
            <Field label="Dollars in a day" hint="Of all people together.">
              {(props) => (
                <input
                  {...props}
                  type="number"
                  min="0.01"
                  step="0.01"
                  value={written.usd_per_day}
                  onInput={({ currentTarget }) => set('usd_per_day')(currentTarget.value)}
                />
              )}
            </Field>
            <Field label="Language of the answers" hint="Such as German.">
              {(props) => (
                <input
                  {...props}
                  dir="auto"
                  value={written.language}
                  onInput={({ currentTarget }) => set('language')(currentTarget.value)}
                />
              )}
            </Field>
          </div>
          <div class="row end">
            <button type="submit" class="primary">
              Save the rule
            </button>
          </div>
        </form>
      </Card>
      <Try room={room.room} rule={rule} />
    </>
  )
}

type TriedLine = operations['postApiRoomsIdTry']['responses'][200]['content']['application/json']['messages'][number]

const OUTCOMES = {
  turn: ['it answers', 'ok'],
  judge: ['it decides whether to answer', 'info'],
  command: ['a command, which starts no turn', 'info'],
  overheard: ['kept for its next answer', 'quiet'],
  ignored: ['dropped by the rule', 'warn'],
  denied: ['dropped by the allowlist', 'bad'],
} as const

/** A line of a transcript is `sender: text`; a text that begins with `@` addresses the bot, and one with `/` is a command. */
const transcriptOf = (text: string) =>
  linesOf(text).map((line) => {
    const [, sender = '', said = ''] = /^([^:]{1,200}):(.*)$/.exec(line) ?? [null, 'somebody', line]
    const words = said.trim()
    const addressed = words.startsWith('@') ? ('mention' as const) : words.startsWith('/') ? ('command' as const) : ('overheard' as const)
    return { sender: sender.trim(), text: words, addressed }
  })

function Try({ room, rule }: { readonly room: string; readonly rule: Rule }) {
  const [text, setText] = useState('')
  const [tried, setTried] = useState<readonly TriedLine[] | undefined>()
  const [problem, setProblem] = useState<unknown>()
  const play = async () => {
    setProblem(undefined)
    try {
      const body = { rule, messages: transcriptOf(text) }
      setTried((await answered(api.POST('/api/rooms/{id}/try', { params: { path: { id: room } }, body }))).messages)
    } catch (failure) {
      setTried(undefined)
      setProblem(failure)
    }
  }
  return (
    <Card title="Try it" padded>
      <div class="stack">
        <Field
          label="Transcript"
          hint="One message a line: the id of the sender, a colon, the text. A text that begins with @ addresses the bot, one with / is a command. Nothing is run, stored or sent."
        >
          {(props) => (
            <textarea
              {...props}
              rows={5}
              dir="auto"
              placeholder={'ann: who has the key?\nbob: @bot when does the shop open?'}
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
            />
          )}
        </Field>
        <div class="row end">
          <Act work={play} disabled={text.trim() === ''}>
            Play it against the rule above
          </Act>
        </div>
        {problem !== undefined && <Problem error={problem} />}
        {tried && <Played lines={tried} />}
      </div>
    </Card>
  )
}

function Played({ lines }: { readonly lines: readonly TriedLine[] }) {
  const turns = lines.filter(({ outcome }) => outcome === 'turn' || outcome === 'judge').length
  return (
    <div aria-live="polite">
      <Note>
        {integer(turns)} of {integer(lines.length)} messages run a turn.
      </Note>
      <Table
        label="What the rule does with each message"
        rows={lines}
        keyOf={(line) => lines.indexOf(line)}
        empty=""
        columns={[
          { name: 'Sender', heads: true, show: ({ sender }) => <Name value={sender} /> },
          { name: 'Text', show: ({ text }) => <Line value={text} /> },
          { name: 'Outcome', show: ({ outcome }) => <Badge state={OUTCOMES[outcome][0]} tone={OUTCOMES[outcome][1]} /> },
          { name: 'Counts as', show: ({ standing }) => standing },
          { name: 'Overheard before', number: true, show: ({ overheard }) => overheard || '' },
        ]}
      />
    </div>
  )
}
