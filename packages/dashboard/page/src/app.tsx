/** The whole page: signing in, the frame around every place, and the places. */
import { effect, signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Route, Router, Switch } from 'wouter-preact'
import { keyDialog, watchKeys } from './data/keys.ts'
import { brokenSince, connect, disconnect, link, watchNetwork } from './data/live.ts'
import { useOverview } from './data/queries.ts'
import { useHashLocation } from './data/router.ts'
import { role, session } from './data/session.ts'
import { theme } from './data/theme.ts'
import { THEMES } from './data/theme-choice.ts'
import { Overview } from './pages/overview.tsx'
import { begin, keepSession, SignIn, signOut } from './pages/sign-in.tsx'
import { Questions } from './ui/dialog.tsx'
import { Page, Problem } from './ui/parts.tsx'
import { Shell } from './ui/shell.tsx'
import { Toasts } from './ui/toast.tsx'
import { ClockTime } from './ui/values.tsx'

/** Loads the code of a place when it is first opened. */
function later(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | undefined
  return function Later() {
    const [, setShown] = useState(false)
    const [failure, setFailure] = useState<unknown>()
    useEffect(() => {
      if (!loaded)
        load().then(
          (component) => {
            loaded = component
            setShown(true)
          },
          () => setFailure(new Error('This part of the page could not be loaded. The gateway may have been updated: reload the page.')),
        )
    }, [])
    if (loaded) {
      const Loaded = loaded
      return <Loaded />
    }
    return failure ? <Problem error={failure} retry={() => location.reload()} /> : <p class="loading">Loading…</p>
  }
}

const Chat = later(async () => (await import('./pages/chat.tsx')).Chat)
const Conversations = later(async () => (await import('./pages/conversations.tsx')).Conversations)
const ConversationPage = later(async () => (await import('./pages/conversations.tsx')).ConversationPage)
const Approvals = later(async () => (await import('./pages/approvals.tsx')).Approvals)
const Turns = later(async () => (await import('./pages/turns.tsx')).Turns)
const TurnPage = later(async () => (await import('./pages/turns.tsx')).TurnPage)
const Deliveries = later(async () => (await import('./pages/deliveries.tsx')).Deliveries)
const InboxEntry = later(async () => (await import('./pages/deliveries.tsx')).InboxEntry)
const OutboxEntry = later(async () => (await import('./pages/deliveries.tsx')).OutboxEntry)
const Procedures = later(async () => (await import('./pages/procedures.tsx')).Procedures)
const Procedure = later(async () => (await import('./pages/procedures.tsx')).Procedure)
const ProcedureEditor = later(async () => (await import('./pages/procedure-editor.tsx')).ProcedureEditor)
const RunPage = later(async () => (await import('./pages/procedures.tsx')).RunPage)
const Channels = later(async () => (await import('./pages/channels.tsx')).Channels)
const ChannelPage = later(async () => (await import('./pages/channels.tsx')).ChannelPage)
const ChannelGuide = later(async () => (await import('./pages/channel-guide.tsx')).ChannelGuide)
const Rooms = later(async () => (await import('./pages/rooms.tsx')).Rooms)
const RoomPage = later(async () => (await import('./pages/rooms.tsx')).RoomPage)
const People = later(async () => (await import('./pages/people.tsx')).People)
const PersonPage = later(async () => (await import('./pages/people.tsx')).PersonPage)
const Configuration = later(async () => (await import('./pages/configuration.tsx')).Configuration)
const Setup = later(async () => (await import('./pages/setup.tsx')).Setup)
const Devices = later(async () => (await import('./pages/devices.tsx')).Devices)
const ThisBrowser = later(async () => (await import('./pages/browser.tsx')).ThisBrowser)
const Tools = later(async () => (await import('./pages/tools.tsx')).Tools)
const Features = later(async () => (await import('./pages/features.tsx')).Features)
const Hardware = later(async () => (await import('./pages/hardware.tsx')).Hardware)
const LogLines = later(async () => (await import('./pages/log-lines.tsx')).LogLines)
const Nodes = later(async () => (await import('./pages/nodes.tsx')).Nodes)
const KeyDialogs = later(async () => (await import('./pages/commands.tsx')).KeyDialogs)
const Logs = later(async () => (await import('./pages/logs.tsx')).Logs)

const ROUTES: readonly (readonly [path: string, component: ComponentType])[] = [
  ['/', Start],
  ['/chat/:id?', Chat],
  ['/conversations/:id', ConversationPage],
  ['/conversations', Conversations],
  ['/approvals', Approvals],
  ['/turns/:id', TurnPage],
  ['/turns', Turns],
  ['/deliveries/inbox/:number', InboxEntry],
  ['/deliveries/outbox/:number', OutboxEntry],
  ['/deliveries/:box?', Deliveries],
  ['/procedure-files/:folder?', ProcedureEditor],
  ['/procedures/:name', Procedure],
  ['/procedures', Procedures],
  ['/runs/:id', RunPage],
  ['/channels/:name/set-up', ChannelGuide],
  ['/channels/:name', ChannelPage],
  ['/channels', Channels],
  ['/rooms/:id', RoomPage],
  ['/rooms', Rooms],
  ['/people/:account', PersonPage],
  ['/people', People],
  ['/configuration', Configuration],
  ['/setup', Setup],
  ['/devices', Devices],
  ['/browser', ThisBrowser],
  ['/tools', Tools],
  ['/features', Features],
  ['/hardware', Hardware],
  ['/logs/lines', LogLines],
  ['/logs', Logs],
  ['/nodes', Nodes],
]

/** A client has no overview: it starts with the chat. */
function Start() {
  return role.value === 'operator' ? <Overview /> : <Chat />
}

const menuOpen = signal(false)

function Foot({ about }: { readonly about: string }) {
  return (
    <footer>
      <LinkState />
      <label class="row">
        <span>Theme</span>
        <select
          value={theme.value}
          onChange={({ currentTarget }) => (theme.value = THEMES.find((one) => one === currentTarget.value) ?? 'system')}
        >
          {THEMES.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        class="small"
        aria-keyshortcuts="Control+K"
        onClick={() => {
          keyDialog.value = 'commands'
        }}
      >
        Commands <kbd>Ctrl K</kbd>
      </button>
      <div class="row spread">
        <span>{about}</span>
        <button type="button" class="small plain" onClick={() => void signOut()}>
          Sign out
        </button>
      </div>
    </footer>
  )
}

const LINK_TEXT = { live: 'Live', connecting: 'Connecting…', broken: 'Disconnected' } as const

const LinkState = () => <span class={`live ${link.value === 'broken' ? 'broken-link' : link.value}`}>{LINK_TEXT[link.value]}</span>

const Broken = () => (
  <div role="status">
    {link.value === 'broken' && brokenSince.value && (
      <div class="broken">
        <span>
          Disconnected since <ClockTime at={brokenSince.value.toISOString()} />. What is shown may be old; the page reconnects by itself.
        </span>
        <button type="button" class="small" onClick={connect}>
          Reconnect now
        </button>
      </div>
    )}
  </div>
)

const Nowhere = () => (
  <Page title="There is nothing here">
    <p>
      <a href="#/">Go to the overview</a>
    </p>
  </Page>
)

function Frame() {
  const [place] = useHashLocation()
  const isOperator = role.value === 'operator'
  const overview = useOverview(isOperator)
  const { status } = overview.data ?? {}
  const counts: Readonly<Record<string, number>> = {
    '/approvals': status?.queues.approvals_pending ?? 0,
    '/deliveries': (status?.queues.messages_dead ?? 0) + (status?.queues.replies_dead ?? 0) + (status?.queues.replies_ambiguous ?? 0),
  }
  return (
    <Shell
      isOperator={isOperator}
      isCluster={isOperator && (status?.cluster ?? null) !== null}
      place={place}
      counts={counts}
      isMenuOpen={menuOpen.value}
      setMenuOpen={(isOpen) => {
        menuOpen.value = isOpen
      }}
      state={<LinkState />}
      notice={<Broken />}
      foot={<Foot about={status ? `${status.version} · ${status.profile}` : ''} />}
    >
      {places}
    </Shell>
  )
}

const Places = () => (
  <Router hook={useHashLocation}>
    <Switch>
      {ROUTES.map(([path, Component]) => (
        <Route key={path} path={path}>
          <Component />
        </Route>
      ))}
      <Route component={Nowhere} />
    </Switch>
  </Router>
)
/** Always the same element, so that a place is not drawn again with the frame, such as when a count changes. */
const places = <Places />

// The events follow while a session lasts.
effect(() => {
  if (session.value === 'out') disconnect()
  if (session.value !== 'in') return undefined
  connect()
  return keepSession()
})
watchNetwork()
watchKeys()
document.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') menuOpen.value = false
})
void begin()

export function App() {
  return (
    <>
      {session.value === 'in' && <Frame />}
      {session.value === 'in' && keyDialog.value && <KeyDialogs />}
      {session.value === 'out' && <SignIn />}
      <Questions />
      <Toasts />
    </>
  )
}
