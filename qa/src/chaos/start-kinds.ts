/** Starts the kinds of messages of a run: one for each channel with a crash kind, and the generic `POST /webhook`. */
import type { CrashKind, WrittenMessage } from '@sluice/testkit/crash-kind'
import { CHANNELS } from '../channels.ts'
import { sectionToml } from '../daemons/section-toml.ts'
import type { Message } from './history.ts'
import type { Kind } from './kind.ts'
import { textOf } from './marks.ts'
import { postKind } from './post-kind.ts'

export async function startKinds(): Promise<readonly [Kind, ...Kind[]]> {
  const channels = CHANNELS.flatMap(async ({ name, testing }) => (testing.crashKind ? [kindOf(name, await testing.crashKind())] : []))
  return [postKind(), ...(await Promise.all(channels)).flat()]
}

/** The kind of a channel, whose messages have the texts of the run. */
function kindOf(name: string, { fake, section, batchMax = 1, isPulled = false, write, request, ...kind }: CrashKind): Kind {
  return {
    ...kind,
    name,
    config: sectionToml(name, section),
    batchMax,
    isPulled,
    write: (draft) => ({ ...draft, kind: name, id: write({ ...draft, text: textOf(draft) }), ...(isPulled && { isPulled }) }),
    ...(request && {
      request(messages) {
        const [first, ...rest] = messages.map(written)
        if (!first) throw new Error('A request carries at least one message; got none.')
        return request([first, ...rest])
      },
    }),
    provider: fake,
  }
}

const written = (message: Message): WrittenMessage => ({
  mark: message.mark,
  sender: message.sender,
  id: message.id,
  text: textOf(message),
})
