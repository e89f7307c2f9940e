// A service for report.mts, which fails now and then. docs/typescript.md runs both.

import { createServer } from "node:http";

// Each page is a number. One of three calls is put off.
let calls = 0;
createServer((request, response) => {
  calls++;
  setTimeout(() => {
    response.writeHead(calls % 3 === 0 ? 503 : 200);
    response.end(request.url?.slice(1));
  }, 50);
}).listen(0, "127.0.0.1", function () {
  console.log(`http://127.0.0.1:${this.address().port}`);
});
