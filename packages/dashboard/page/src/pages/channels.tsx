/** The channels: whether each works, what it misses, and a message to try it. */
import { useEffect, useState } from 'preact/hooks'
import { answered, api, type Got, get } from '../data/api.ts'
import { REFRESH_MS, refresh, useApi } from '../data/queries.ts'
import { to, useParams } from '../data/router.ts'
import { Address, usePublicUrl } from '../ui/address.tsx'
import { Act, Copy, Field } from '../ui/controls.tsx'
import { confirmed, Dialog } from '../ui/dialog.tsx'
import { HistoryCard } from '../ui/history-card.tsx'
import { Badge, Card, Empty, Facts, Loaded, Note, Page } from '../ui/parts.tsx'
import { QrCode } from '../ui/qr-code.tsx'
import { Table } from '../ui/table.tsx'
import { Line, Name, Text } from '../ui/text.tsx'
import { attempt } from '../ui/toast.tsx'
import { Time } from '../ui/values.tsx'

type Channel = Got<'/api/channels'>['channels'][number]

export function Channels() {
  const channels = useApi('/api/channels', {}, { refreshMs: REFRESH_MS })
  const features = useApi('/api/features', {})
  const others = features.data?.features.filter(({ kind, configured }) => kind === 'channel' && !configured) ?? []
  return (
    <Page title="Channels" about="Where people write to the agent.">
      <Card title="Configured">
        <Loaded query={channels}>
          {({ channels: rows }) => (
            <Table
              label="Configured channels"
              rows={rows}
              keyOf={({ channel }) => channel}
              empty="No channel is configured. Choose one below."
              columns={[
                {
                  name: 'Channel',
                  heads: true,
                  show: ({ channel, title }) => (
                    <a href={to('channels', channel)}>
                      <Name value={title} />
                    </a>
                  ),
                },
                { name: 'State', show: ({ state }) => <Badge state={state} /> },
                { name: 'Last message', show: ({ last_event_at }) => <Time at={last_event_at} /> },
                { name: 'Last sent', show: ({ last_sent_at }) => <Time at={last_sent_at} /> },
                { name: 'Gaps', number: true, show: ({ gaps }) => gaps.length || '' },
                { name: 'Missing', show: ({ missing }) => missing && <Line value={missing} /> },
                { name: 'Detail', show: ({ detail }) => detail && <Line value={detail} /> },
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Card title="Not configured">
        <Table
          label="Channels that are not configured"
          rows={others}
          keyOf={({ feature }) => feature}
          empty="Every channel is configured."
          columns={[
            { name: 'Channel', heads: true, show: ({ feature, summary }) => summary ?? feature.replace(/^channel-/, '') },
            { name: 'State', show: ({ state }) => <Badge state={state} /> },
            {
              name: 'What to do',
              show: ({ feature, compiled, build }) =>
                compiled ? (
                  <a href={guideOf(feature)}>Set it up</a>
                ) : (
                  build && (
                    <span class="row">
                      <code>{build}</code> <Copy text={build} />
                    </span>
                  )
                ),
            },
          ]}
        />
      </Card>
    </Page>
  )
}

/** The place that says what to do at the platform, step by step. */
const guideOf = (feature: string): string => to('channels', feature.replace(/^channel-/, ''), 'set-up')

export function ChannelPage() {
  const { name = '' } = useParams<{ name: string }>()
  const channels = useApi('/api/channels', {}, { refreshMs: REFRESH_MS })
  const [isTesting, setTesting] = useState(false)
  const channel = channels.data?.channels.find((one) => one.channel === name)
  return (
    <Page
      title={channel?.title ?? name}
      about={<a href="#/channels">All channels</a>}
      actions={
        channel && (
          <>
            <a class="button" href={guideOf(channel.feature)}>
              Set up
            </a>
            <a class="button" href={`#/configuration?section=channels_config.${name}`}>
              All settings
            </a>
            <a class="button" href={`#/deliveries/inbox?channel=${encodeURIComponent(name)}`}>
              Messages
            </a>
            <button type="button" class="primary" disabled={channel.target === null} onClick={() => setTesting(true)}>
              Send a test message
            </button>
          </>
        )
      }
    >
      <Link channel={name} />
      <Loaded query={channels}>
        {() => (channel ? <ChannelView channel={channel} /> : <Empty>This channel is not configured.</Empty>)}
      </Loaded>
      {isTesting && channel && <Test channel={channel} onClose={() => setTesting(false)} />}
    </Page>
  )
}

function ChannelView({ channel }: { readonly channel: Channel }) {
  const { state, detail, last_event_at, last_sent_at, missing, webhook, unsigned, allow, target, notifies, gaps } = channel
  const publicUrl = usePublicUrl()
  return (
    <>
      {missing !== null && (
        <Note tone="bad">
          Its configuration misses <code>{missing}</code>.
        </Note>
      )}
      {unsigned !== null && (
        <Note tone="warn">
          Anybody can send requests in the name of this platform, because <code>{unsigned}</code> is not set.
        </Note>
      )}
      {allow.length === 0 && <Note tone="warn">No sender is allowed: every message is refused.</Note>}
      <Card title="State" padded>
        <Facts
          rows={[
            ['State', <Badge key="state" state={state} />],
            detail !== null && ['Detail', <Text key="detail" value={detail} />],
            ['Last message', <Time key="event" at={last_event_at} />],
            ['Last sent', <Time key="sent" at={last_sent_at} />],
            webhook !== null && ['Address to register', <Address key="webhook" url={`${publicUrl}${webhook}`} />],
            [
              'Allowed senders',
              allow.length === 0
                ? 'none'
                : allow.map((sender) => (
                    <div key={sender}>
                      <Name value={sender} />
                    </div>
                  )),
            ],
            [
              'Notifications',
              target === null ? 'it sends only answers' : notifies ? `as ${target}` : `as ${target}, to a conversation that each names`,
            ],
          ]}
        />
      </Card>
      <Checks channel={channel} />
      <HistoryCard of="channel" channel={channel.channel} />
      <Card title="Gaps">
        <Table
          label="Gaps"
          rows={gaps}
          keyOf={({ at, why }) => `${at} ${why}`}
          empty="No message is known to be missing."
          columns={[
            { name: 'Noticed', heads: true, show: ({ at }) => <Time at={at} /> },
            { name: 'Messages may be missing since', show: ({ since }) => <Time at={since} /> },
            { name: 'Why', show: ({ why }) => <Text value={why} /> },
          ]}
        />
      </Card>
    </>
  )
}

type Check = Got<'/api/doctor'>['checks'][number]

/** What `sluice doctor` finds about one channel. */
export function Checks({ channel: { channel, feature } }: { readonly channel: Channel }) {
  const [checks, setChecks] = useState<readonly Check[] | undefined>()
  const isAbout = ({ check, detail }: Check) => check === feature || detail.startsWith(`${channel}:`) || detail.startsWith(`${channel} `)
  const check = async () => setChecks((await attempt(() => get('/api/doctor', {})))?.checks.filter(isAbout))
  return (
    <Card title="Check" actions={<Act work={check}>Check it now</Act>}>
      <div aria-live="polite">
        {checks ? (
          <Table
            label="Checks of the channel"
            rows={checks}
            keyOf={(one) => checks.indexOf(one)}
            empty="Nothing was found that is wrong with it."
            columns={[
              { name: 'Result', show: ({ status }) => <Badge state={status} /> },
              { name: 'Detail', heads: true, show: ({ detail }) => <Text value={detail} /> },
              { name: 'What to do', show: ({ fix }) => fix && <Text value={fix} /> },
            ]}
          />
        ) : (
          <Empty>The check asks the platform, and looks at the settings of the channel.</Empty>
        )}
      </div>
    </Card>
  )
}

const LINK = '/api/channels/{channel}/link'
const LINK_REFRESH_MS = 2000

/** Links a channel as a device of an account: a phone scans the code, or its owner types one. */
function Link({ channel }: { readonly channel: string }) {
  const [canLink, setCanLink] = useState(false)
  const link = useApi(LINK, { path: { channel } }, { refreshMs: canLink ? LINK_REFRESH_MS : false })
  const [phone, setPhone] = useState('')
  const shown = link.data
  // Most channels have nothing to link, and are asked once.
  useEffect(() => setCanLink(shown !== undefined), [shown !== undefined])
  if (!shown) return null
  const start = async () => {
    await attempt(() => answered(api.POST(LINK, { params: { path: { channel } }, body: phone === '' ? {} : { phone } })))
    await refresh('/api/channels')
  }
  const unlink = async (...question: readonly [] | readonly [title: string, text: string, action: string]) => {
    const [title, text, action] = question
    if (title !== undefined && !(await confirmed(title, text ?? '', action ?? ''))) return
    await attempt(() => answered(api.DELETE(LINK, { params: { path: { channel } } })))
    await refresh('/api/channels')
  }
  return (
    <Card title="Linked device" actions={<Badge state={shown.state} tone={shown.state === 'linked' ? 'ok' : 'warn'} />} padded>
      <div class="stack" aria-live="polite">
        {shown.state === 'linked' && (
          <div class="row spread">
            <p>
              Linked to <Name value={shown.account ?? 'an account'} />.
            </p>
            <Act
              class="danger"
              work={() => unlink('Unlink this device?', 'The channel neither receives nor sends until it is linked again.', 'Unlink')}
            >
              Unlink
            </Act>
          </div>
        )}
        {shown.reason !== null && (
          <Note tone="bad">
            <Text value={shown.reason} />
          </Note>
        )}
        {shown.qr && (
          <div class="row">
            <QrCode rows={shown.qr.rows} />
            <p>Scan it with the phone of the account, under linked devices. It changes every twenty seconds.</p>
          </div>
        )}
        {shown.code !== null && (
          <p>
            Type this code into the phone: <strong class="mono">{shown.code}</strong>
          </p>
        )}
        {shown.state === 'linking' && (
          <div class="row end">
            <Act work={() => unlink()}>Cancel</Act>
          </div>
        )}
        {shown.state === 'unlinked' && (
          <div class="filters">
            <label>
              Number of the account
              <input
                value={phone}
                placeholder="for a code to type in"
                onInput={({ currentTarget }) => setPhone(currentTarget.value.trim())}
              />
            </label>
            <Act class="primary" work={start}>
              {phone === '' ? 'Link by QR code' : 'Link by code'}
            </Act>
          </div>
        )}
      </div>
    </Card>
  )
}

export function Test({ channel: { channel, title, notifies }, onClose }: { readonly channel: Channel; readonly onClose: () => void }) {
  const [text, setText] = useState('This is a test of this channel.')
  const [receiver, setReceiver] = useState('')
  const send = async () => {
    const done = await attempt(
      () =>
        answered(
          api.POST('/api/channels/{channel}/test', {
            params: { path: { channel } },
            body: { text, ...(receiver !== '' && { to: receiver }) },
          }),
        ),
      'It is in the outbox.',
    )
    if (!done) return
    onClose()
    await refresh('/api/deliveries', '/api/channels')
    const [first] = done.replies
    if (first !== undefined) location.hash = to('deliveries', 'outbox', first)
  }
  return (
    <Dialog title={`Send a test message over ${title}`} onClose={onClose}>
      <Field label="Text">
        {(props) => <textarea {...props} rows={3} dir="auto" value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />}
      </Field>
      <Field
        label="Conversation"
        hint={notifies ? 'Empty: the conversation for notifications.' : 'The id of the conversation on the platform.'}
      >
        {(props) => <input {...props} dir="auto" value={receiver} onInput={({ currentTarget }) => setReceiver(currentTarget.value)} />}
      </Field>
      <div class="row end">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <Act class="primary" work={send} disabled={text.trim() === '' || (!notifies && receiver === '')}>
          Send
        </Act>
      </div>
    </Dialog>
  )
}
