// Leads an election through a server of Regent's tools, and looks at everything on the way. It prints each call with its
// answer as a line of JSON. The library refuses answers that do not match the schemas of their tools.
//
//	node client.mjs MODE http URL
//	node client.mjs MODE stdio COMMAND ARGUMENT...
//
// MODE is v1 for version 1 of the library, and otherwise how version 2 finds the version of the protocol.
const [mode, how, where, ...rest] = process.argv.slice(2);
const names = mode === 'v1'
  ? ['sdk/client/index.js', 'sdk/client/streamableHttp.js', 'sdk/client/stdio.js']
  : ['client', 'client/stdio'];
const { Client, StreamableHTTPClientTransport, StdioClientTransport } =
  Object.assign({}, ...await Promise.all(names.map((name) => import(`@modelcontextprotocol/${name}`))));

const election = `${mode}-${how}`.replaceAll(/[^a-z0-9-]/g, '');
const client = new Client({ name: 'test', version: '1' }, {
  versionNegotiation: { mode: mode === 'auto' || mode === 'legacy' ? mode : { pin: mode } },
});
await client.connect(how === 'http'
  ? new StreamableHTTPClientTransport(new URL(where))
  : new StdioClientTransport({ command: where, args: rest, env: process.env, stderr: 'inherit' }));

const print = (name, answer) => console.log(JSON.stringify({ name, ...answer }));
const call = async (name, input) => {
  const answer = await client.callTool({ name, arguments: input });
  print(name, { input, refused: answer.isError ?? false, text: answer.content[0].text, answer: answer.structuredContent });
  return answer.structuredContent;
};

const { tools } = await client.listTools();
print('tools', { answer: tools.filter((t) => t.inputSchema && t.outputSchema && t.annotations && t.description).map((t) => t.name) });
const { handle } = await call('lead', { election, candidateId: 'node', leaseDuration: '1h', metadata: { at: 'here' } });
await call('leading', { handle });
await call('report', { handle, progress: 3, health: 'ok', custom: { page: 7 } });
await call('checkpoint_put', { handle, sequence: 1, task: 'a test', data: { page: 7, open: [null] } });
await call('checkpoint_get', { election });
await call('journal_append', { handle, after: 0, entries: [{ type: 'page', data: 1 }, { data: { n: [2] } }] });
await call('journal_read', { election });
const { revision } = await call('who_leads', { election });
await call('why_not', { election, candidateId: 'another' });
await call('check_token', { election, fencingToken: 1 });
await call('watch', { election, afterRevision: 0 });
const paused = await call('pause', { election, revision, for: '1m', reason: 'a test' });
await call('resume', { election, revision: paused.revision, reason: 'the test is over' });
await call('history', { election });
await call('lead', { election, candidateId: 'another', wait: '1s' }); // refused
await call('check_token', { election, fencingToken: 9 }); // refused
await call('leading', { handle: 'regent-lead-made-up' }); // refused
await call('leading', {}); // refused
await call('stop_leading', { handle, reason: 'the test is over' });
await call('leading', { handle });
await client.close();
