/** `sluice people`: links the accounts of one person, and lists, shows and separates them. */
import type { LinkCode, ShownPerson } from '@sluice/http/answers'
import { apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'

/** Without an argument prints a code; with one, links the account of this machine or device with the account that made the code. */
export const link = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json, args } = context
    const [typed] = args
    if (typed !== undefined) {
      print(context, await api.post<ShownPerson>('/api/people/links', { code: typed }))
      return 0
    }
    const made = await api.post<LinkCode>('/api/people/codes')
    if (json) out.json(made)
    else {
      out.print(made.code)
      out.print(`Write /link ${made.code} to the agent from your account in a chat before ${made.expires_at}. Show the code to nobody.`)
    }
    return 0
  })

export const list = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const { people } = await api.get<{ people: readonly ShownPerson[] }>('/api/people')
    if (json) out.json(people)
    else if (people.length === 0) out.print('no linked people')
    else
      out.table(
        ['owner', 'account', 'linked', 'confirmed with'],
        people.flatMap(({ owner, accounts }) => accounts.map((one) => [owner, one.account, one.linked_at, one.confirmed.join(', ')])),
      )
    return 0
  })

export const show = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const [account = ''] = context.args
    print(context, await api.get<ShownPerson>(apiPath('/api/people', account)))
    return 0
  })

export const unlink = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json, args } = context
    const [account = ''] = args
    const answer = await api.delete<{ readonly unlinked: string; readonly from: readonly string[] }>(apiPath('/api/people', account))
    if (json) out.json(answer)
    else out.print(`${answer.unlinked} is no longer linked with ${answer.from.join(', ')}`)
    return 0
  })

function print({ out, json }: CliContext, person: ShownPerson): void {
  if (json) {
    out.json(person)
    return
  }
  out.print(`memories and limits count for ${person.owner}`)
  out.table(
    ['account', 'who', 'linked', 'confirmed with'],
    person.accounts.map(({ account, shown, linked_at, confirmed }) => [account, shown, linked_at, confirmed.join(', ')]),
  )
}
